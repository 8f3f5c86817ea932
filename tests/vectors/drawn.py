"""Bytes that everyone can make again."""

import hashlib


def drawn(label: str, count: int) -> bytes:
    """SHAKE-128 of a label."""
    return hashlib.shake_128(label.encode()).digest(count)

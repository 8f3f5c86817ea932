"""What Alice sees: the key that the tests share, runs with her transcript kept, and its ciphertexts decrypted."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import stats

from ppspeech.channel import Channel
from ppspeech.crypto.paillier import PaillierSecretKey, generate_paillier
from ppspeech.crypto.paillier.group import KEY_ID_BYTES
from ppspeech.network import Transcript, memory_pair, run_together

ALARM = 1e-4
DEMO = {"insecure_demo": True}


@cache
def demo_key() -> PaillierSecretKey:
    return generate_paillier(512, insecure_demo=True)


def run_recorded(alice: Callable[[Channel], Any], bob: Callable[[Channel], Any]) -> tuple[Any, Any, Transcript]:
    """Both results, and what Alice sent and received."""
    here, there = memory_pair()
    record = Transcript(here, keep_payloads=True)
    return *run_together(lambda c: alice(record), bob, (here, there)), record


def ciphertexts_of(payload: bytes) -> list[Any]:
    public = demo_key().public
    return public.load(payload, (len(payload) - KEY_ID_BYTES) // public.ciphertext_bytes)


def seen(record: Transcript, kind: int) -> list[list[int]]:
    """What Alice decrypts of each message of a kind that she receives."""
    payloads = [entry.payload for entry in record.entries if entry.direction == "received" and entry.kind == kind]
    return [demo_key().decrypt_many(ciphertexts_of(payload or b"")) for payload in payloads]


def looks_uniform(values: list[int], modulus: int) -> bool:
    """The test that masked words must pass: chi-square of the low and the high byte, as residues of the whole ring.

    At a false-alarm rate of 1e-4 for each byte.
    """
    residues = [value % modulus for value in values]
    low = np.bincount([residue & 255 for residue in residues], minlength=256)
    high = np.bincount([residue * 256 // modulus for residue in residues], minlength=256)
    return all(stats.chisquare(counts).pvalue > ALARM for counts in (low, high))

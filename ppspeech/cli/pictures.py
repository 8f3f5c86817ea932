"""A picture of one query: what the client has, and what the server gets of it."""

from pathlib import Path

import numpy as np

from ppspeech.arrays import Reals
from ppspeech.errors import PpspeechError
from ppspeech.network import Transcript
from ppspeech.protocols import Kind
from ppspeech.storage import atomic_write

SIDE = 160
"""Bytes of a row of the picture of what the server gets."""


def query_bytes(record: Transcript) -> bytes:
    """The encrypted features in a client's transcript that kept payloads."""
    return b"".join(
        entry.payload or b"" for entry in record.entries if entry.direction == "sent" and entry.kind == Kind.QUERY
    )


def plot_views(frames: Reals, record: Transcript, path: Path, title: str = "") -> None:
    """Draw features `(frames, features)` beside the encrypted bytes of the same clip, and how often each byte occurs.

    Args:
        frames: the client's.
        record: its transcript, with payloads.
        path: .png, .pdf or .svg.
        title: of the whole picture.

    Raises:
        PpspeechError: for a transcript without payloads, or another suffix.
    """
    import matplotlib.pyplot as plt

    data = np.frombuffer(query_bytes(record), np.uint8)
    if path.suffix.lower() not in {".png", ".pdf", ".svg"}:
        raise PpspeechError(f"a picture is saved as .png, .pdf or .svg, got {path}")
    if not len(data):
        raise PpspeechError("the transcript kept no payloads: connect with keep_payloads=True")
    rows = min(SIDE, len(data) // SIDE)
    own = np.frombuffer(np.clip(frames * 32, -128, 127).astype(np.int8).tobytes(), np.uint8)
    figure, axes = plt.subplots(2, 2, figsize=(10, 6.5), layout="constrained", height_ratios=(3, 2))
    try:
        figure.suptitle(title or "One clip, as each party sees it")
        axes[0, 0].imshow(np.clip(frames, -3, 3).T, origin="lower", aspect="auto", cmap="RdBu_r")
        axes[0, 0].set(title="the client: its features", xlabel="frame", ylabel="feature")
        axes[0, 1].imshow(data[: rows * SIDE].reshape(rows, SIDE), aspect="auto", cmap="gray")
        axes[0, 1].set(title=f"the server: {rows * SIDE:,} of {len(data):,} bytes it gets", xlabel="byte", ylabel="row")
        for axis, values, name in ((axes[1, 0], own, "features as bytes"), (axes[1, 1], data, "bytes the server gets")):
            axis.hist(values, bins=np.arange(257), density=True, color="#4c72b0")
            axis.axhline(1 / 256, color="black", linewidth=0.8, linestyle="--", label="uniform")
            axis.set(title=f"how often each byte occurs: {name}", xlabel="byte", ylabel="share")
            axis.legend(loc="upper right")
        with atomic_write(path) as temporary:
            figure.savefig(temporary, dpi=120)
    finally:
        plt.close(figure)

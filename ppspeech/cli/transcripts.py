"""A transcript for people: what went over the wire, and what the bytes looked like to the server."""

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table

from ppspeech.errors import PpspeechError
from ppspeech.screen import Console

if TYPE_CHECKING:
    from ppspeech.arrays import Reals
    from ppspeech.network import Entry, Transcript

SHOWN_BYTES = 12
DIGITS = "0123456789"
SIDE = 160  # bytes of a row of the picture of what the server gets


def show_transcript(record: "Transcript", of: str = "voice", alike: str = "every voice") -> None:
    """Print every step, then what the server received of each kind, for a transcript that kept payloads. `of`: what
    it was about; `alike`: those for which the server sees the same.
    """
    console = Console()
    seen = Table(title=f"What the server saw of the {of}", title_justify="left", box=box.SIMPLE_HEAD)
    for heading in ("kind", "messages", "bytes", "bits of surprise a byte", "begins with"):
        seen.add_column(heading, justify="left" if heading in {"kind", "begins with"} else "right")
    received: dict[int, list[bytes]] = {}
    for entry in record.entries:
        if entry.direction == "sent":
            received.setdefault(entry.kind, []).append(entry.payload or b"")
    for kind, payloads in received.items():
        data = b"".join(payloads)
        name = kind_name(kind).replace("_", " ")
        sizes = f"{len(payloads):,}", f"{len(data):,}", f"{_entropy(data):.3f}"
        seen.add_row(name, *sizes, data[:SHOWN_BYTES].hex(" "))
    console.print(seen)
    console.print(
        f"  {record.bytes_up:,} bytes up, {record.bytes_down:,} down, {record.rounds} round trips; lengths and "
        f"order are the same for {alike}; 8 bits a byte are coin flips, fewer come from headers and packed bits",
        style="dim",
    )


def telling(messages: Path, other: str, own: str) -> "Callable[[Entry], None]":
    """Of every message that `own` receives from `other`, a line of JSON at the end of a file that all parties share."""

    def told(entry: "Entry") -> None:
        if entry.direction == "received":
            about = {"kind": kind_name(entry.kind), "what": kind_meaning(entry.kind), "bytes": entry.size}
            with messages.open("a", encoding="utf-8") as file:  # one short write each: lines stay whole
                file.write(json.dumps({"from": other, "to": own, **about, "seconds": round(entry.seconds, 3)}) + "\n")

    return told


Received = Mapping[str, Mapping[str, Mapping[int, Sequence[int]]]]
"""By party and sender, as `Transcript.received` counts: by kind, how many messages came, and their bytes."""


def saw_table(received: Received) -> Table:
    """What each party received: from whom, of what kind, how often and how much. Parties that only their number tells
    apart share a line.
    """
    table = Table(title="What each party saw")
    for heading in ("party", "from", "message", "what it is", "messages", "bytes"):
        table.add_column(heading, justify="right" if heading in {"messages", "bytes"} else "left", overflow="fold")
    lines: dict[tuple[str, str, int], list[tuple[str, str, Sequence[int]]]] = {}
    for party, others in received.items():
        for other, kinds in others.items():
            stem = other.rstrip(DIGITS)
            pair = (party, stem) if stem != other else (party.rstrip(DIGITS), other)
            for number, counted in kinds.items():
                lines.setdefault((*pair, int(number)), []).append((party, other, counted))
    for (*_, number), equal in lines.items():
        who, whom, counted = zip(*equal, strict=True)
        counts, sizes = (_range([each[place] for each in counted]) for place in (0, 1))
        table.add_row(_together(who), _together(whom), kind_name(number), kind_meaning(number), counts, sizes)
    return table


def saw_plain(received: Received) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
    """The same for programs: by party, sender and the name of the message."""
    return {
        party: {
            other: {
                kind_name(int(number)): {"messages": count, "bytes": size} for number, (count, size) in kinds.items()
            }
            for other, kinds in others.items()
        }
        for party, others in received.items()
    }


def kind_name(number: int) -> str:
    """What a kind of message is called; its number if it is of no room."""
    from ppspeech.protocols import kind_of

    kind = kind_of(number)
    return str(number) if kind is None else kind.name.lower()


def kind_meaning(number: int) -> str:
    """What a kind of message is to whoever receives it."""
    from ppspeech.protocols import kind_of

    kind = kind_of(number)
    return "" if kind is None else kind.meaning


def _together(names: Sequence[str]) -> str:
    """Names that differ in their number: the first and the last.

    >>> _together(["party0", "party1", "party1", "party2"]), _together(["curator", "curator"])
    ('party0 to 2', 'curator')
    """
    first, last = names[0], names[-1]
    return first if first == last else f"{first} to {last.removeprefix(first.rstrip(DIGITS))}"


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _entropy(data: bytes) -> float:
    counts = Counter(data)
    return -sum(count / len(data) * math.log2(count / len(data)) for count in counts.values()) if data else 0.0


def plot_views(frames: "Reals", record: "Transcript", path: Path, title: str = "") -> None:
    """Draw features `(frames, features)` beside the encrypted bytes of the same clip, and how often each byte occurs.

    Raises PpspeechError for a transcript without payloads, or a path that is not .png, .pdf or .svg.
    """
    import numpy as np

    from ppspeech.pictures import blank, save
    from ppspeech.protocols import Kind

    sent = [entry.payload or b"" for entry in record.entries if entry.direction == "sent" and entry.kind == Kind.QUERY]
    data = np.frombuffer(b"".join(sent), np.uint8)
    if not len(data):
        raise PpspeechError("the transcript kept no payloads: connect with keep_payloads=True")
    rows = min(SIDE, len(data) // SIDE)
    own = np.frombuffer(np.clip(frames * 32, -128, 127).astype(np.int8).tobytes(), np.uint8)
    picture = blank(10, 6.5)
    axes = picture.subplots(2, 2, height_ratios=(3, 2))
    picture.suptitle(title or "One clip, as each party sees it")
    axes[0, 0].imshow(np.clip(frames, -3, 3).T, origin="lower", aspect="auto", cmap="RdBu_r")
    axes[0, 0].set(title="the client: its features", xlabel="frame", ylabel="feature")
    axes[0, 1].imshow(data[: rows * SIDE].reshape(rows, SIDE), aspect="auto", cmap="gray")
    axes[0, 1].set(title=f"the server: {rows * SIDE:,} of {len(data):,} bytes it gets", xlabel="byte", ylabel="row")
    for axis, values, name in ((axes[1, 0], own, "features as bytes"), (axes[1, 1], data, "bytes the server gets")):
        axis.hist(values, bins=np.arange(257), density=True, color="#4c72b0")
        axis.axhline(1 / 256, color="black", linewidth=0.8, linestyle="--", label="uniform")
        axis.set(title=f"how often each byte occurs: {name}", xlabel="byte", ylabel="share")
        axis.legend(loc="upper right")
    save(picture, path, dpi=120)

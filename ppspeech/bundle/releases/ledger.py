"""A ledger: the releases made from data sets, one line each, so that they compose in public.

One JSON object a line, in the order in which releases were made, for people and programs. Its last field is the
SHA-256 of the bytes before it, and `previous` is that of the line before (64 zeros in the first):

    {"format": 1, "number": 2, …, "account": {…}, "previous": "9f…", "hash": "41…"}

So whoever changes, moves or takes out a line changes every hash after it. Lines that are cut off at the end leave a
ledger that is whole: only someone who knows a later head, `NUMBER:HASH`, sees it. What is in a ledger is public: a
name of the data, who released what, its guarantee and its events.

Guarantees of one data set compose by the accountant, from the events of all releases; epsilons are not added up. They
compose only under one relation: an epsilon for one utterance and one for one speaker have no total.
"""

import datetime
import hashlib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ppspeech.bundle.reader import Bundle, check_bounds, replay
from ppspeech.bundle.statement import TOLERANCE
from ppspeech.bundle.strict_json import check_text, from_plain, read_json, to_plain
from ppspeech.errors import BundleError, PrivacyError
from ppspeech.privacy import Accountant, Relation
from ppspeech.storage import atomic_write, locked_folder

FORMAT = 1
NOTHING = "0" * 64
"""What the first entry follows."""

MOST_BYTES = 1 << 24  # of a ledger that is read

_HASH = re.compile(r"[0-9a-f]{64}")
_SEAL = re.compile(rb', "hash": "([0-9a-f]{64})"\}')
_HEAD = re.compile(r"(\d{1,7}):([0-9a-f]{64})")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True, slots=True)
class Entry:
    """What is said of one release, apart from its events.

    `bundle`: the fingerprint of what was released; `epsilon`: null where there is no guarantee.
    """

    format: int
    number: int
    time: str
    data: str
    by: str
    what: str
    bundle: str
    epsilon: float | None
    delta: float
    previous: str
    hash: str

    def __post_init__(self) -> None:
        if self.format != FORMAT:
            raise BundleError(f"this version reads ledgers of format {FORMAT}, got {self.format}")
        for name in ("bundle", "previous", "hash"):
            if not _HASH.fullmatch(getattr(self, name)):
                raise BundleError(f"{name} must be 64 hexadecimal digits, got {getattr(self, name)!r:.80}")
        if not _TIME.fullmatch(self.time):
            raise BundleError(f"time must read like 2026-01-31T12:00:00Z, got {self.time!r:.80}")
        if not 0 <= self.delta < 1 or (self.epsilon is not None and self.epsilon < 0):
            raise BundleError(f"epsilon must be >= 0 and delta in [0, 1), got {self.epsilon} and {self.delta}")


@dataclass(frozen=True, slots=True)
class Booked:
    """One release: what is said of it, and its events."""

    entry: Entry
    account: Accountant

    def check(self) -> None:
        """Replay the events. Raises BundleError if they do not give what the entry says."""
        said, replayed = self.entry.epsilon, self.account.epsilon(self.entry.delta)
        same = math.isinf(replayed) if said is None else abs(replayed - said) <= TOLERANCE * said + 1e-12
        if not same:
            raise BundleError(
                f"entry {self.entry.number} says epsilon = {said} at delta = {self.entry.delta:.3g}, but its events "
                f"give {replayed:.6g}: do not trust this ledger"
            )


@dataclass(frozen=True, slots=True)
class Total:
    """What all releases of a data set under one relation come to; `epsilon` is infinite where nothing bounds it."""

    data: str
    relation: Relation
    releases: int
    delta: float
    epsilon: float

    def __str__(self) -> str:
        many = f"{self.releases} release{'s' if self.releases > 1 else ''} of {self.data}"
        if math.isinf(self.epsilon):
            return f"{many}: nothing bounds what they tell about {self.relation}"
        pair = f"{self.epsilon:.4g}" if self.delta == 0 else f"({self.epsilon:.4g}, {self.delta:.3g})"
        return f"{many}: {pair}-DP for {self.relation} together"


@dataclass(frozen=True, slots=True)
class Ledger:
    """The releases of a ledger whose chain holds."""

    booked: tuple[Booked, ...] = ()

    @property
    def head(self) -> str:
        """`NUMBER:HASH` of the last entry. Whoever knows it sees whether anything before it is changed or gone."""
        return f"{self.booked[-1].entry.number}:{self.booked[-1].entry.hash}" if self.booked else f"0:{NOTHING}"

    @property
    def data(self) -> tuple[str, ...]:
        """The data sets, in the order in which something was first released from them."""
        return tuple(dict.fromkeys(each.entry.data for each in self.booked))

    def totals(self, data: str, delta: float | None = None) -> tuple[Total, ...]:
        """What the releases of a data set come to, relation by relation; at the largest of their deltas, or at this."""
        found: dict[Relation, list[Booked]] = {}
        for each in self.booked:
            if each.entry.data == data:
                found.setdefault(each.account.relation, []).append(each)
        return tuple(_total(data, relation, booked, delta) for relation, booked in found.items())

    def check_head(self, head: str) -> None:
        """Refuse a ledger that does not go through this head: one that was cut off before it, or written anew."""
        parts = _HEAD.fullmatch(head)
        if parts is None:
            raise BundleError(f"a head reads NUMBER:HASH, as `ppspeech ledger show` prints it, got {head!r:.100}")
        number = int(parts[1])
        if number > len(self.booked):
            raise BundleError(
                f"the ledger was cut off: it ends with entry {len(self.booked)}, and the head that is known is of "
                f"entry {number}"
            )
        if (self.booked[number - 1].entry.hash if number else NOTHING) != parts[2]:
            raise BundleError(f"the ledger was written anew: entry {number} is not the one whose head is known")

    def check_bundle(self, bundle: Bundle) -> Entry:
        """The entry of a bundle. Raises BundleError if there is none, or one that says something else about it."""
        for each in self.booked:
            if each.entry.bundle == bundle.fingerprint:
                said = (each.entry.epsilon, each.entry.delta, each.account.to_json())
                if said != (*_stated(bundle), bundle.account.to_json()):
                    raise BundleError(f"entry {each.entry.number} says something else about the bundle than the bundle")
                return each.entry
        raise BundleError(
            f"the bundle {bundle.fingerprint} is not in the ledger: it was released without being entered"
        )


def read_ledger(path: str | Path) -> Ledger:
    """Read a ledger and check its chain. Raises BundleError for one that is absent, or damaged in any way."""
    path = Path(path)
    if not path.is_file():
        raise BundleError(f"no ledger at {path}: `ppspeech ledger add` begins one")
    return parse_ledger(_bytes(path))


def parse_ledger(data: bytes) -> Ledger:
    """The ledger in these bytes; every kind of damage is refused in words of its own.

    Raises BundleError for a line that was changed, lines that were moved, doubled or taken out, one that was replaced
    together with its hash, and a last line that is not whole.
    """
    if data and not data.endswith(b"\n"):
        raise BundleError("the ledger ends within a line: its last entry was not written whole")
    booked = tuple(_read(line, place) for place, line in enumerate(data.split(b"\n")[:-1], start=1))
    _check_order([each.entry.number for each in booked])
    before = NOTHING
    for each in booked:
        if each.entry.previous != before:
            raise BundleError(
                f"entry {each.entry.number} does not follow the entry before it as it stands: that one was replaced"
                if each.entry.number > 1
                else "entry 1 follows something that is not here: the beginning of the ledger was cut off"
            )
        before = each.entry.hash
    return Ledger(booked)


def add_release(
    path: str | Path, bundle: Bundle, *, data: str, by: str, most: float | None = None, delta: float | None = None
) -> Entry:
    """Enter a bundle as a release from `data`, made by `by`; with `most`, only if the total stays within it.

    Several may add at the same time; on a full disk the ledger stays as it was. A ledger that is not there is begun.
    `most` is an epsilon for all releases of the data set under the bundle's relation, at `delta` or the largest of
    theirs. Raises BundleError for a ledger that is damaged, or holds the bundle already; PrivacyError if the total
    would be above `most`, or if there is none, since other releases are for another unit.
    """
    path = Path(path).resolve()
    with locked_folder(path.parent):
        old = _bytes(path) if path.exists() else b""
        ledger = parse_ledger(old)
        for each in ledger.booked:
            if each.entry.bundle == bundle.fingerprint:
                raise BundleError(f"the bundle is in the ledger already: entry {each.entry.number}")
        line, booked = _written(ledger, bundle, check_text("data", data), check_text("by", by))
        if most is not None:
            _check_most(Ledger((*ledger.booked, booked)), booked, most, delta)
        if len(old) + len(line) > MOST_BYTES:
            raise BundleError(f"{path} is full: a ledger has at most {MOST_BYTES:,} bytes; begin another")
        with atomic_write(path) as temporary:
            temporary.write_bytes(old + line)
    return booked.entry


def _check_most(ledger: Ledger, new: Booked, most: float, delta: float | None) -> None:
    if not (math.isfinite(most) and most > 0):
        raise PrivacyError(f"the most epsilon must be a number > 0, got {most}")
    data, relation = new.entry.data, new.account.relation
    totals = ledger.totals(data, delta)
    others = [total.relation for total in totals if total.relation != relation]
    if others:
        raise PrivacyError(
            f"this release of {data} is for {relation}, others in the ledger are for {', '.join(map(str, others))}: "
            "they have no total, and nothing can be promised about it"
        )
    (total,) = totals
    if not total.epsilon <= most:
        raise PrivacyError(f"refused, nothing is released: {total}, and the most that was stated is {most:g}")


def _total(data: str, relation: Relation, booked: Sequence[Booked], delta: float | None) -> Total:
    at = max(each.entry.delta for each in booked) if delta is None else delta
    together = Accountant(relation)
    for each in booked:
        for event, count in each.account.events:
            together.compose(event, count)
    try:
        check_bounds(together, "the ledger")
        epsilon = together.epsilon(at)
    except BundleError:  # too weak to be worth replaying
        epsilon = math.inf
    return Total(data, relation, len(booked), at, epsilon)


def _stated(bundle: Bundle) -> tuple[float | None, float]:
    guarantee = bundle.statement.guarantee
    return (guarantee.epsilon if guarantee.proven else None), guarantee.delta


def _written(ledger: Ledger, bundle: Bundle, data: str, by: str) -> tuple[bytes, Booked]:
    """The line of one more entry, and what is read from it."""
    epsilon, delta = _stated(bundle)
    entry = Entry(
        format=FORMAT,
        number=len(ledger.booked) + 1,
        time=datetime.datetime.now(tz=datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        data=data,
        by=by,
        what=bundle.config.type,
        bundle=bundle.fingerprint,
        epsilon=epsilon,
        delta=delta,
        previous=ledger.head.partition(":")[2],
        hash=NOTHING,
    )
    plain: dict[str, Any] = to_plain(entry)
    tail = {name: plain.pop(name) for name in ("previous", "hash")}
    whole = plain | {"account": bundle.account.to_json(), "previous": tail["previous"]}
    body = json.dumps(whole, ensure_ascii=False, allow_nan=False).removesuffix("}").encode()
    line = body + f', "hash": "{hashlib.sha256(body).hexdigest()}"}}'.encode()
    return line + b"\n", _read(line, entry.number)


def _read(line: bytes, place: int) -> Booked:
    name = f"line {place} of the ledger"
    seal = _SEAL.search(line, max(0, len(line) - 100))
    if seal is None or seal.end() != len(line):
        raise BundleError(f"{name} does not end with its hash: it is no entry")
    if hashlib.sha256(line[: seal.start()]).hexdigest() != seal[1].decode():
        raise BundleError(f"{name} was changed after it was entered: its hash is another one")
    plain = read_json(line, name)
    if not isinstance(plain.get("account"), dict):
        raise BundleError(f"{name} has no account: an entry has {', '.join(field.name for field in fields(Entry))}")
    account = replay(plain.pop("account"), name)
    return Booked(from_plain(Entry, plain, name), account)


def _check_order(numbers: Sequence[int]) -> None:
    wrong = next(((place, number) for place, number in enumerate(numbers, start=1) if place != number), None)
    if wrong is None:
        return
    place, number = wrong
    if len(set(numbers)) < len(numbers):
        raise BundleError(f"the ledger has entry {number} twice")
    if place in numbers:
        raise BundleError(f"the ledger is not in its order: entry {number} stands where entry {place} belongs")
    raise BundleError(f"entry {place} was taken out of the ledger: entry {number} stands in its place")


def _bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BundleError(f"{path} has more than {MOST_BYTES:,} bytes, the most that is read")
    return data

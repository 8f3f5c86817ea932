"""Algorithm 3 of Hamm 2015: contributors learn filters of their own, and show each other nothing but filtered samples.

An aggregator hands out a common filter, learned from public data, and passes on what the contributors show. The filter
is one that all have agreed on, by its digest: the first samples go through it, so an aggregator that chose it, for each
contributor anew, would choose what it sees of them.

    1. contributor -> aggregator   a ticket, if it was here before
    2. aggregator -> contributor   the common filter, and a ticket to come back with
    3. contributor -> aggregator   its task labels and filtered samples g_s(X_s)
    for each of a public number of rounds:
    4. aggregator -> contributor   all others' filtered samples, as they are now, and labels
    5. contributor -> aggregator   its samples behind its improved filter
    6. aggregator -> contributor   the end

Labels are sent with the samples each time (the paper sends them once), so that whoever comes, leaves or comes back
between two turns makes nobody's copy wrong. Whoever breaks the protocol, or sends numbers that no filter gives, is
expelled and what it showed removed; whoever merely vanishes keeps its place. Limit 3.14 in docs/theory/together.md.
"""

import hashlib
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn

from ppspeech.channel import Channel
from ppspeech.crypto import unpack_floats
from ppspeech.errors import (
    BadLengthError,
    ModelError,
    PeerGoneError,
    PeerTimeoutError,
    ProtocolError,
    RangeError,
    WrongKeyError,
)
from ppspeech.filters import Filtered, LinearFilter, PersonalFilter, PersonalSettings, improve_
from ppspeech.protocols.filters.board import NO_TICKET, TICKET_BYTES, Board, Order, Standing, SupersededError
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.party import Party, register_protocol

GO_ON, OVER = b"\x00", b"\x01"
"""What every message of step 4 begins with: samples follow, or the word with which it ends."""
LONGEST_WORD = 500
FINISHED = "all rounds are done"
MOST_CONTRIBUTORS = 1_000

SEEN = (
    ("aggregator", "who takes part and when, every contributor's labels, and its filtered samples of every round"),
    ("contributor", "the common filter, and all others' labels and filtered samples as they are at its own turns"),
    ("nobody", "anyone's inputs, beyond what the common filter gives of them"),
)
"""What each party sees, no more and no less. The first samples shown are behind the common filter: whoever keeps them
can work out a `PersonalFilter` from those that follow. Personal filters thus protect what is published at the end, from
those who were not there; against the parties themselves they are worth what the common filter is worth."""


@dataclass(frozen=True)
class PersonalTerms:
    """What all agree on, and what is let in.

    D `inputs` become d `features`. `classes`: of the task, 2 to 65,536. `rounds`: turns of each contributor. `bound`:
    on every filtered number's magnitude; the common filter's features have deviation about 1. `gather_seconds`: how
    long the aggregator lets those who came wait for those who have not. `common`: digest of the common filter.
    """

    inputs: int
    features: int
    classes: int
    rounds: int = 20
    settings: PersonalSettings = field(default_factory=PersonalSettings)
    order: Order = "sequential"
    most_samples: int = 10_000
    bound: float = 1e3
    gather_seconds: float = 60.0
    common: str = field(kw_only=True)

    def __post_init__(self) -> None:
        if min(self.inputs, self.features, self.rounds, self.most_samples) < 1 or not self.bound > 0:
            raise ModelError(f"sizes, rounds and bound must be positive, got {self}")
        if not 2 <= self.classes <= 65_536:
            raise ModelError(f"a task has 2 to 65,536 classes, got {self.classes}")
        if self.order not in get_args(Order):
            raise ModelError(f"order must be one of {', '.join(get_args(Order))}, got {self.order!r}")
        if not re.fullmatch("[0-9a-f]{64}", self.common):
            raise ModelError(f"common is the SHA-256 of the common filter, 64 hexadecimal digits, got {self.common!r}")

    @classmethod
    def of(cls, terms: Mapping[str, Any]) -> "PersonalTerms":
        """From plain values, `settings` as a mapping, such as a group's file holds."""
        plain = dict(terms)
        settings = PersonalSettings(**plain.pop("settings", {}))
        return cls(settings=settings, **plain)


personal_filters = register_protocol(
    "personal_filters",
    functionality="to each contributor a filter of its own (19), to the aggregator everyone's filtered samples",
    leakage=(
        "to the aggregator: who sent which filtered samples and labels, in every round, those behind the common filter "
        "first, from which personal maps can be worked out; to contributors: the same of the others together, without "
        "names. Filtered samples are not noisy: nothing is proven about what can be inferred from them, and there "
        "is no simulator"
    ),
    assumptions=(
        "all compute as they should: numbers within bounds that are chosen to mislead are not found out; the channels "
        "are authenticated"
    ),
    terms=PersonalTerms,
)


class Contributor:
    """One contributor: its samples `(n, D)` and labels `(n,)`, which stay here, and its own filter.

    `make`: from the common filter to one's own at its start, a module with the same `.features`. `history`: Phi before
    and after every step, a turn each. Unfit samples and labels are refused before anything is sent.
    """

    def __init__(
        self,
        inputs: Tensor,
        labels: Tensor,
        terms: PersonalTerms,
        make: Callable[[LinearFilter], nn.Module] = PersonalFilter,
    ) -> None:
        if inputs.ndim != 2 or inputs.shape[1] != terms.inputs or not 1 <= len(inputs) <= terms.most_samples:
            raise RangeError(
                f"a contributor has 1 to {terms.most_samples} samples of {terms.inputs} inputs, got "
                f"{tuple(inputs.shape)}"
            )
        if not inputs.isfinite().all():
            raise RangeError("the samples hold values that are not finite: remove those samples")
        if labels.shape != inputs.shape[:1] or labels.is_floating_point() or not _within(labels, terms.classes):
            raise RangeError(f"labels must be {len(inputs)} integers in 0..{terms.classes - 1}")
        self.inputs, self.labels, self.terms = inputs.double(), labels.long(), terms
        self.filter: nn.Module | None = None
        self.history: list[tuple[float, ...]] = []
        self._make = make
        self._ticket = NO_TICKET

    def take_part(self, channel: Channel) -> str:
        """Run one session, from wherever the last one ended; returns the aggregator's last word. After a
        `ProtocolError` another call on a new channel goes on with the filter as it is.
        """
        terms = self.terms
        channel.send(Kind.ENTER, self._ticket)  # 1
        size = 4 * terms.features * (terms.inputs + 1)
        answer = channel.receive(Kind.COMMON_FILTER, TICKET_BYTES + size)  # 2
        self._ticket, common = answer[:TICKET_BYTES], answer[TICKET_BYTES:]
        if hashlib.sha256(common).hexdigest() != terms.common:
            raise WrongKeyError(
                "the aggregator's common filter is not the one that was agreed on: nothing is shown to it"
            )
        if self.filter is None:
            self.filter = self._make(_read_filter(common, terms)).double()
        channel.send(Kind.TASK_LABELS, _labels_bytes(self.labels))  # 3
        channel.send(Kind.FILTERED, self._filtered())
        largest = MOST_CONTRIBUTORS * terms.most_samples * (4 * terms.features + 2)
        while True:
            message = channel.receive(Kind.OTHERS, at_most=min(largest, 2**26 - 1) + 1)  # 4, 6
            if message[:1] != GO_ON:
                return message[1:].decode(errors="replace")
            others = _read_others(message[1:], terms)
            turn = improve_(self.filter, self.inputs, self.labels, others, terms.classes, terms.settings)
            self.history.append(turn)
            channel.send(Kind.FILTERED, self._filtered())  # 5

    def _filtered(self) -> bytes:
        assert self.filter is not None
        with torch.no_grad():
            return _features_bytes(self.filter(self.inputs))


class Aggregator:
    """The aggregator: passes filtered samples on, and sees no others; at most 1,000 contributors are expected, by name.
    All start from the common filter, learned from public data.
    """

    def __init__(
        self, common: LinearFilter, contributors: list[str], terms: PersonalTerms, gather_seconds: float | None = None
    ) -> None:
        if (common.inputs, common.features) != (terms.inputs, terms.features):
            raise ModelError(
                f"the common filter must map {terms.inputs} inputs to {terms.features}, got {common.inputs} and "
                f"{common.features}"
            )
        if not 2 <= len(set(contributors)) == len(contributors) <= MOST_CONTRIBUTORS:
            raise ModelError(f"need 2 to {MOST_CONTRIBUTORS} contributors, each with a name of its own")
        if terms.common != (found := digest_of(common)):
            raise ModelError(
                f"the common filter is not the one agreed on: write `common: {found}` into the terms of all"
            )
        self.common, self.terms = common, terms
        waiting = terms.gather_seconds if gather_seconds is None else gather_seconds
        self.board = Board(contributors, terms.rounds, terms.order, waiting)

    def attend(self, channel: Channel, name: str | None = None) -> str:
        """Run one session with one contributor, in a thread of its own; returns how it ended, in words. `name`: who it
        is, where the channel has proved it; None lets in whoever has a ticket.
        """
        try:
            who, session, ticket = self.board.enter(name, channel.receive(Kind.ENTER, TICKET_BYTES))  # 1
        except ProtocolError as error:
            if name is not None and self.board.seats[name].session == 0:
                self.board.leave(name, 0, expelled=not _vanished(error))
            return f"{name or 'someone'} did not come in: {error}"
        try:
            channel.send(Kind.COMMON_FILTER, ticket + _filter_bytes(self.common))  # 2
            payload = channel.receive(Kind.TASK_LABELS, at_most=2 * self.terms.most_samples)  # 3
            labels = _read_labels(payload, self.terms)
            self._show(channel, who, session, labels, turn=False)
            while self.board.wait_for_turn(who, session):
                others = self.board.others(who)
                if others is None:
                    raise PeerGoneError("nobody else is there to hide among")
                labeled = _features_bytes(others.features) + _labels_bytes(others.labels)
                channel.send(Kind.OTHERS, GO_ON + labeled)  # 4
                self._show(channel, who, session, labels, turn=True)  # 5
            channel.send(Kind.OTHERS, OVER + FINISHED.encode())  # 6
        except SupersededError as error:
            return str(error)
        except ProtocolError as error:
            self.board.leave(who, session, expelled=not _vanished(error))
            with suppress(ProtocolError):
                channel.send(Kind.OTHERS, OVER + str(error).encode()[:LONGEST_WORD])
            return f"{who}: {error}"
        return f"{who}: {FINISHED}"

    def shown(self) -> dict[str, Filtered]:
        """The filtered samples on the board by contributor: the output of Algorithm 3."""
        return {name: seat.shown for name, seat in self.board.seats.items() if seat.shown is not None}

    def standings(self) -> dict[str, Standing]:
        """Where each contributor is."""
        return {name: seat.standing for name, seat in self.board.seats.items()}

    def _show(self, channel: Channel, name: str, session: int, labels: Tensor, *, turn: bool) -> None:
        payload = channel.receive(Kind.FILTERED, 4 * len(labels) * self.terms.features)
        self.board.show(name, session, Filtered(_read_features(payload, self.terms), labels), turn=turn)


@personal_filters.party("contributor")
def contributor(party: Party, samples: Any, labels: Any, /, **terms: Any) -> dict[str, Any]:
    """A contributor's: samples `(n, D)` and labels `(n,)`. Returns its filter, the last word and how Phi went."""
    own_samples = torch.as_tensor(samples, dtype=torch.float64)
    learner = Contributor(own_samples, torch.as_tensor(labels), PersonalTerms.of(terms))
    word = learner.take_part(party.channels["aggregator"])
    assert isinstance(learner.filter, PersonalFilter)
    own = learner.filter.merged()
    return {"weight": own.weight.tolist(), "bias": own.bias.tolist(), "history": learner.history, "end": word}


@personal_filters.party("aggregator")
def aggregator(party: Party, weight: Any, bias: Any, /, **terms: Any) -> dict[str, Any]:
    """The aggregator's: the common weight `(d, D)` and bias `(d,)`. Returns where each is and what it showed."""
    common = LinearFilter.of(torch.as_tensor(weight, dtype=torch.float64), torch.as_tensor(bias, dtype=torch.float64))
    named = {party.names[seat]: party.channels[seat] for seat in party.seats("contributor")}
    hub = Aggregator(common, list(named), PersonalTerms.of(terms))
    attend_all(hub, named)
    return {
        name: {
            "standing": seat.standing,
            "turns": seat.turns,
            "features": [] if seat.shown is None else seat.shown.features.tolist(),
            "labels": [] if seat.shown is None else seat.shown.labels.tolist(),
        }
        for name, seat in hub.board.seats.items()
    }


def digest_of(common: LinearFilter) -> str:
    """What all agree on: SHA-256 of a filter's weight and bias as they travel, in hexadecimal."""
    return hashlib.sha256(_filter_bytes(common)).hexdigest()


def attend_all(party: Aggregator, channels: Mapping[str, Channel]) -> dict[str, str]:
    """Attend to every contributor at the same time; when all are done, how each session ended, in words."""
    words: dict[str, str] = {}

    def attend(name: str, channel: Channel) -> None:
        words[name] = party.attend(channel, name)

    threads = [threading.Thread(target=attend, args=each, daemon=True) for each in channels.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return words


def _vanished(error: ProtocolError) -> bool:
    """Whether a peer merely went away, which is no fault of its numbers."""
    return isinstance(error, PeerGoneError | PeerTimeoutError)


def _within(labels: Tensor, classes: int) -> bool:
    return bool(((labels >= 0) & (labels < classes)).all())


def _features_bytes(features: Tensor) -> bytes:
    return bytes(features.numpy(force=True).astype("<f4").tobytes())


def _filter_bytes(common: LinearFilter) -> bytes:
    return _features_bytes(common.weight) + _features_bytes(common.bias)


def _labels_bytes(labels: Tensor) -> bytes:
    return bytes(labels.numpy(force=True).astype("<u2").tobytes())


def _read_filter(payload: bytes, terms: PersonalTerms) -> LinearFilter:
    numbers = torch.from_numpy(unpack_floats(payload))
    if not numbers.isfinite().all():
        raise RangeError("the aggregator's filter holds values that are not finite")
    weight, bias = numbers[: -terms.features], numbers[-terms.features :]
    return LinearFilter.of(weight.view(terms.features, terms.inputs), bias)


def _read_features(payload: bytes, terms: PersonalTerms) -> Tensor:
    """`(n, d)`, float64. Raises `RangeError` for numbers that are not finite or out of bounds."""
    features = torch.from_numpy(unpack_floats(payload)).view(-1, terms.features)
    if not (features.abs() <= terms.bound).all():  # also refuses what is not a number
        raise RangeError(f"filtered samples must be finite and within {terms.bound:g}")
    return features


def _read_labels(payload: bytes, terms: PersonalTerms) -> Tensor:
    """`(n,)`, n >= 1."""
    if len(payload) < 2 or len(payload) % 2:
        raise BadLengthError(f"labels are two bytes each, at least one of them, got {len(payload)} bytes")
    labels = torch.from_numpy(np.frombuffer(payload, "<u2").astype(np.int64))
    if not _within(labels, terms.classes):
        raise RangeError(f"labels must lie in 0..{terms.classes - 1}")
    return labels


def _read_others(payload: bytes, terms: PersonalTerms) -> Filtered:
    each = 4 * terms.features + 2
    if len(payload) < each or len(payload) % each:
        raise BadLengthError(f"samples and labels take {each} bytes each, got {len(payload)}")
    samples = len(payload) // each
    split = 4 * terms.features * samples
    return Filtered(_read_features(payload[:split], terms), _read_labels(payload[split:], terms))

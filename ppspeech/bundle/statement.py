"""`privacy.json`: what a released model promises, to whom, and what the promise leaves out."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal, get_args

from ppspeech.bundle.config import BundleConfig
from ppspeech.bundle.strict_json import check_text, from_plain, to_plain
from ppspeech.errors import BundleError, PrivacyError
from ppspeech.privacy import MOST_DELTA, Accountant, Guarantee, NonPrivateEvent

FORMAT = 3
"""What privacy.json says and how the card reads: to be raised when either changes. Format 1 left to its writer what the
method was, whether bits were safe, and what the card said; the card of format 2 tells of another signature.
`ppspeech export OLD --out NEW` writes them anew."""

TOLERANCE = 1e-6  # how far, relatively, a stated epsilon may lie from the replayed one: rounding, and nothing more
GROUP_TOLERANCE = 1e-4  # the same for groups, whose epsilon is found by searching

KINDS = frozenset({"pure", "approximate", "none"})
MOST_LINES = 100

COVERED = "the weights in model.safetensors"
"""What a guarantee is about: the events are those of the weights, and of nothing else in the bundle."""

GROUPS = (10, 100)
"""For so many units of one person the epsilon is stated too, where a unit is not a person."""

PARTS_OF_PEOPLE = frozenset({"frame", "utterance", "record"})

Topic = Literal[
    "normalization", "early_stopping", "tuning", "threshold", "initialization", "labels", "counts", "metrics"
]
"""Where private data is touched beside training itself; `counts`: how many recordings there were, and how long."""

OLD_TOPICS = {"normalisation": "normalization", "initialisation": "initialization"}
"""As the first bundles spell them."""

REQUIRED: tuple[Topic, ...] = tuple(topic for topic in get_args(Topic) if topic != "metrics")
"""What every statement must speak about: these are where guarantees leak in practice."""

Status = Literal["charged", "not_covered", "untouched"]
"""`charged`: its events are in the account. `not_covered`: the guarantee does not hold for it. `untouched`: public."""


@dataclass(frozen=True, slots=True)
class DataTouch:
    """One place where the data could be looked at outside training, and what that means for the guarantee.

    `charge`: where it is charged, the place in the account of the event that pays for it, from 0.
    """

    topic: Topic
    status: Status
    note: str
    charge: int | None = None

    def __post_init__(self) -> None:
        for name, value, choices in (("topic", self.topic, Topic), ("status", self.status, Status)):
            if value not in get_args(choices):
                raise BundleError(f"{name} must be one of {', '.join(get_args(choices))}, got {value!r:.80}")
        check_text("note", self.note)
        if (self.status == "charged") != (self.charge is not None):
            raise BundleError(
                f"{self.topic} is {self.status}: what is charged names the event that pays for it, by its place in the "
                f"account, and nothing else does, got charge {self.charge!r:.80}"
            )


@dataclass(frozen=True, slots=True)
class GroupEpsilon:
    """Epsilon, at the statement's delta, for a person with `size` of the units; None where nothing bounds it."""

    size: int
    epsilon: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyStatement:
    """A guarantee and its edges. Nothing is covered but what `covers` names.

    Made by `PrivacyStatement.of`, from events and touches. Raises BundleError for a kind that cannot be released, a
    delta above `MOST_DELTA`, or a topic that is missing or named twice.

    Attributes:
        guarantee: unit, adjacency, kind, epsilon and delta; kind `none` is a plain statement that there is none.
        method: how the accountant got epsilon; `none` where there is none.
        groups: epsilon for people with several of the units, where a unit is part of a person.
        touches: data touches outside training, one a topic; all of `REQUIRED` are there.
        caveats: `required_caveats`, and whatever else must be known.
    """

    guarantee: Guarantee
    method: str
    groups: tuple[GroupEpsilon, ...]
    covers: tuple[str, ...]
    touches: tuple[DataTouch, ...]
    caveats: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.guarantee.kind not in KINDS or self.guarantee.rho is not None:
            raise BundleError(f"a bundle states kind pure, approximate or none, got {self.guarantee.kind!r}")
        if self.guarantee.claimed_epsilon is not None:
            raise BundleError("a bundle states what is proven; a claimed epsilon has no place in it")
        if self.guarantee.delta > MOST_DELTA:
            raise BundleError(
                f"delta is {self.guarantee.delta:g}: above {MOST_DELTA:g} it allows to publish people as they are"
            )
        if self.covers != ((COVERED,) if self.private else ()):
            raise BundleError(f"a guarantee covers {COVERED!r} alone, and no guarantee covers nothing")
        topics = [touch.topic for touch in self.touches]
        missing = [topic for topic in REQUIRED if topic not in topics]
        if missing or len(set(topics)) < len(topics):
            raise BundleError(
                f"every statement says once what became of {', '.join(REQUIRED)}: missing {missing or 'none'}, "
                f"got {topics}"
            )
        check_text("method", self.method)
        for name, lines in (("caveats", self.caveats), ("assumptions", self.guarantee.assumptions)):
            if len(lines) > MOST_LINES:
                raise BundleError(f"{name} has {len(lines)} lines, at most {MOST_LINES} are read")
            for line in lines:
                check_text(f"a line of {name}", line)
        if self.guarantee.caveat:
            check_text("caveat", self.guarantee.caveat)

    @classmethod
    def of(
        cls,
        account: Accountant,
        config: BundleConfig,
        touches: Sequence[DataTouch],
        *,
        delta: float = 0.0,
        assumptions: Sequence[str] = (),
        caveats: Sequence[str] = (),
    ) -> "PrivacyStatement":
        """What events come to at this delta; topics that no touch speaks about are not covered."""
        guarantee = account.guarantee(delta, assumptions=tuple(assumptions))
        said = {touch.topic: touch for touch in touches}
        unsaid = [DataTouch(topic, "not_covered", UNSAID) for topic in REQUIRED if topic not in said]
        return cls(
            guarantee=guarantee,
            method=account.report(delta).method if guarantee.proven else "none",
            groups=_groups(account, guarantee),
            covers=(COVERED,) if guarantee.proven else (),
            touches=(*said.values(), *unsaid),
            caveats=tuple(dict.fromkeys((*caveats, *required_caveats(guarantee, config)))),
        )

    @property
    def private(self) -> bool:
        """Whether anything is proven."""
        return self.guarantee.proven

    def check(self, account: Accountant, config: BundleConfig) -> None:
        """Replay the account. Raises BundleError for whatever does not follow from it: unit, adjacency, epsilon, its
        method, float safety, groups, charges; or a caveat that is missing.
        """
        stated = self.guarantee
        if account.relation != stated.relation:
            raise BundleError(f"the statement is for {stated.relation}, its events for {account.relation}")
        if not account.events:
            raise BundleError("there are no events: nothing shows what happened to the data")
        open_events = any(isinstance(event, NonPrivateEvent) for event, _ in account.events)
        if not self.private and not open_events:
            raise BundleError("the statement says that there is no guarantee, but no event says what was not private")
        if self.private:
            self._check_promise(account)
        elif self.method != "none" or self.groups or stated.float_safe:
            raise BundleError("there is no guarantee: it has no method, no groups and no float safety to state")
        self._check_charges(account)
        missing = [caveat for caveat in required_caveats(stated, config) if caveat not in self.caveats]
        if missing:
            raise BundleError(f"the statement leaves out what must be known: {missing[0]}")

    def _check_promise(self, account: Accountant) -> None:
        stated = self.guarantee
        replayed = account.epsilon(stated.delta)
        if not abs(replayed - stated.epsilon) <= TOLERANCE * stated.epsilon + 1e-12:
            raise BundleError(
                f"the statement says epsilon = {stated.epsilon:.6g} at delta = {stated.delta:.3g}, but its events "
                f"give {replayed:.6g}: do not trust this bundle"
            )
        by_method = account.report(stated.delta).epsilons.get(self.method, math.inf)
        if not abs(by_method - stated.epsilon) <= TOLERANCE * stated.epsilon + 1e-12:
            raise BundleError(f"the statement says that epsilon is by {self.method!r:.80}, which does not give it")
        if stated.float_safe != account.float_safe:
            raise BundleError(
                f"the statement says float_safe = {stated.float_safe}, but its events say {account.float_safe}: do not "
                "trust this bundle"
            )
        replay = _groups(account, stated)
        near = [
            ours.size == theirs.size
            and (
                ours.epsilon is theirs.epsilon is None
                or math.isclose(ours.epsilon or 0.0, theirs.epsilon or 0.0, rel_tol=GROUP_TOLERANCE)
            )
            for ours, theirs in zip(self.groups, replay, strict=False)
        ]
        if len(self.groups) != len(replay) or not all(near):
            raise BundleError(
                f"the statement says {self.groups} for people with several {stated.unit}s, its events {replay}"
            )

    def _check_charges(self, account: Accountant) -> None:
        """Every charge is paid by an event of its own, and one more is that of the weights."""
        free = set(range(len(account.events)))
        for touch in self.touches:
            if touch.charge is not None:
                if touch.charge not in free or len(free) == 1:
                    raise BundleError(
                        f"{touch.topic} is said to be charged to event {touch.charge}, but of {len(account.events)} "
                        "different events none is left to pay for it beside the weights"
                    )
                free.remove(touch.charge)

    def to_json(self) -> dict[str, Any]:
        """Plain values for `privacy.json`."""
        return {
            "format": FORMAT,
            "guarantee": self.guarantee.to_json(),
            "method": self.method,
            "groups": [to_plain(group) for group in self.groups],
            "covers": list(self.covers),
            "touches": [to_plain(touch) for touch in self.touches],
            "caveats": list(self.caveats),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "PrivacyStatement":
        """Read what `to_json` wrote. Raises BundleError for anything else, a missing unit above all."""
        check_format(plain)
        wanted = {"format", "guarantee", "method", "groups", "covers", "touches", "caveats"}
        if set(plain) != wanted:
            raise BundleError(f"privacy.json has the fields {sorted(wanted)}, got {sorted(plain)}")
        for name in ("groups", "covers", "touches", "caveats"):
            if not isinstance(plain[name], list):
                raise BundleError(f"{name} must be a list, got {type(plain[name]).__name__}")
        return cls(
            guarantee=read_guarantee(plain),
            method=check_text("method", plain["method"]),
            groups=tuple(from_plain(GroupEpsilon, group, "a group") for group in plain["groups"]),
            covers=tuple(plain["covers"]),
            touches=tuple(from_plain(DataTouch, touch, "a touch") for touch in plain["touches"]),
            caveats=tuple(plain["caveats"]),
        )


UNSAID = "the training run does not say"

SAID_BEFORE = frozenset(
    f"One {unit} is protected, not a person: for someone with k of them in the data, epsilon is up to k times as "
    "large, and delta grows too."
    for unit in PARTS_OF_PEOPLE
)
"""What format 1 said in the place of `groups`: at the same delta epsilon is larger than that."""

IN_USE = "The guarantee is about the training data. It does not protect what is said to the model in use."


def required_caveats(guarantee: Guarantee, config: BundleConfig) -> tuple[str, ...]:
    """What follows from a guarantee and a kind of model, and may not be left out."""
    if not guarantee.proven:
        return ("This model gives no privacy guarantee of any kind.",)
    found = [IN_USE]
    if guarantee.unit in PARTS_OF_PEOPLE:
        found.append(f"One {guarantee.unit} is protected, not a person: see what is left for someone with several.")
    if not guarantee.float_safe:
        found.append("Noise was drawn in floating point; the guarantee is for real numbers, not for their last bits.")
    if not config.kind.uses:
        found.append("That each loss in training looked at its own example alone is its author's word.")
    if getattr(config.settings, "label", None) == "speaker":
        found.append("The labels name people who took part in training.")
    return tuple(found)


def check_format(plain: Mapping[str, Any]) -> None:
    """Refuse another format than this version's, and say what to do about it."""
    found = plain.get("format")
    if found in (1, 2) and type(found) is int:
        raise BundleError(
            "this bundle is of an earlier format: `ppspeech export OLD --out NEW` writes it anew, with a statement and "
            "a card that follow from its events"
        )
    if found != FORMAT or type(found) is not int:
        raise BundleError(f"this version reads statements of format {FORMAT}, got {found!r:.80}")


def read_guarantee(plain: Mapping[str, Any]) -> Guarantee:
    """The guarantee of a `privacy.json` of any format. Raises BundleError if there is none that can be read."""
    try:
        return Guarantee.from_json(plain["guarantee"])
    except PrivacyError as refused:
        raise BundleError(f"privacy.json states no guarantee that can be read: {refused}") from None


def _groups(account: Accountant, guarantee: Guarantee) -> tuple[GroupEpsilon, ...]:
    if not guarantee.proven or guarantee.unit not in PARTS_OF_PEOPLE:
        return ()
    found = [(size, account.group_epsilon(size, guarantee.delta)) for size in GROUPS]
    return tuple(GroupEpsilon(size, None if math.isinf(epsilon) else epsilon) for size, epsilon in found)


def in_words(guarantee: Guarantee) -> str:
    """What a guarantee means for one person, without a formula.

    From TPR <= e^epsilon FPR + delta and its mirror image: whoever has to say, at even odds, whether a unit was in
    the data is right with probability at most (e^epsilon + delta) / (1 + e^epsilon).

    >>> from ppspeech.privacy import Relation
    >>> print(in_words(Guarantee(kind="pure", epsilon=1.0, relation=Relation("speaker", "add_remove"))))
    Someone who knows everything else and must guess, at even odds, whether one speaker was in the training data
    is right at most 73.1 % of the time.
    """
    if not guarantee.proven:
        return (
            "There is NO differential privacy here: the weights may reveal who was in the training data and what they "
            "said."
        )
    odds = (1 + guarantee.delta * math.exp(-guarantee.epsilon)) / (1 + math.exp(-guarantee.epsilon))
    question = {
        "add_remove": f"whether one {guarantee.unit} was in the training data",
        "replace": f"which of two candidates for one {guarantee.unit} was in the training data",
    }[guarantee.adjacency]
    return (
        f"Someone who knows everything else and must guess, at even odds, {question} is right at most "
        f"{100 * odds:.1f} % of the time."
    )


def for_people(groups: Sequence[GroupEpsilon], unit: str) -> list[str]:
    """What is left of a guarantee for people with several of the units, a line each."""
    return [
        f"with {group.size} {unit}s in the data, "
        + ("nothing is shown" if group.epsilon is None else f"epsilon is {group.epsilon:.4g} at the same delta")
        for group in groups
    ]


def privacy_schema() -> dict[str, Any]:
    """The JSON Schema of `privacy.json`, for programs that are not ppspeech."""
    schema: dict[str, Any] = json.loads(resources.files("ppspeech.bundle").joinpath("privacy.schema.json").read_bytes())
    return schema

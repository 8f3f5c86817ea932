"""`privacy.json`: what a released model promises, to whom, and what the promise leaves out."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal, get_args

from ppspeech.bundle.strict_json import check_text, from_plain, to_plain
from ppspeech.errors import BundleError, PrivacyError
from ppspeech.privacy import Accountant, Guarantee, NonPrivateEvent

FORMAT = 1
TOLERANCE = 1e-6  # how far, relatively, a stated epsilon may lie from the replayed one: rounding, and nothing more

KINDS = frozenset({"pure", "approximate", "none"})
MOST_LINES = 100

Topic = Literal["normalization", "early_stopping", "tuning", "threshold", "initialization", "labels", "metrics"]
"""Where private data is touched beside training itself."""

OLD_TOPICS = {"normalisation": "normalization", "initialisation": "initialization"}
"""As the first bundles spell them."""

REQUIRED: tuple[Topic, ...] = ("normalization", "early_stopping", "tuning", "threshold")
"""What every statement must speak about: these are where guarantees leak in practice."""

Status = Literal["charged", "not_covered", "untouched"]
"""`charged`: its events are in the account. `not_covered`: the guarantee does not hold for it. `untouched`: public."""


@dataclass(frozen=True, slots=True)
class DataTouch:
    """One place where the data could be looked at outside training, and what that means for the guarantee."""

    topic: Topic
    status: Status
    note: str

    def __post_init__(self) -> None:
        for name, value, choices in (("topic", self.topic, Topic), ("status", self.status, Status)):
            if value not in get_args(choices):
                raise BundleError(f"{name} must be one of {', '.join(get_args(choices))}, got {value!r:.80}")
        check_text("note", self.note)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacyStatement:
    """A guarantee and its edges. Nothing is covered but what `covers` names.

    Raises BundleError for a kind that cannot be released, or a topic that is missing or named twice.

    Attributes:
        guarantee: unit, adjacency, kind, epsilon and delta; kind `none` is a plain statement that there is none.
        method: how the accountant got epsilon; `none` where there is none.
        touches: data touches outside training, one a topic; all of `REQUIRED` are there.
    """

    guarantee: Guarantee
    method: str
    covers: tuple[str, ...]
    touches: tuple[DataTouch, ...]
    caveats: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.guarantee.kind not in KINDS or self.guarantee.rho is not None:
            raise BundleError(f"a bundle states kind pure, approximate or none, got {self.guarantee.kind!r}")
        if self.guarantee.claimed_epsilon is not None:
            raise BundleError("a bundle states what is proven; a claimed epsilon has no place in it")
        if self.private != bool(self.covers):
            raise BundleError("a guarantee covers something, and no guarantee covers nothing")
        topics = [touch.topic for touch in self.touches]
        missing = [topic for topic in REQUIRED if topic not in topics]
        if missing or len(set(topics)) < len(topics):
            raise BundleError(
                f"every statement says once what became of {', '.join(REQUIRED)}: missing {missing or 'none'}, "
                f"got {topics}"
            )
        check_text("method", self.method)
        for name, lines in (
            ("covers", self.covers),
            ("caveats", self.caveats),
            ("assumptions", self.guarantee.assumptions),
        ):
            if len(lines) > MOST_LINES:
                raise BundleError(f"{name} has {len(lines)} lines, at most {MOST_LINES} are read")
            for line in lines:
                check_text(f"a line of {name}", line)
        if self.guarantee.caveat:
            check_text("caveat", self.guarantee.caveat)

    @property
    def private(self) -> bool:
        """Whether anything is proven."""
        return self.guarantee.proven

    def check(self, account: Accountant) -> None:
        """Replay the account. Raises BundleError if its unit, adjacency or epsilon is another than is stated."""
        stated = self.guarantee
        if account.relation != stated.relation:
            raise BundleError(f"the statement is for {stated.relation}, its events for {account.relation}")
        if not account.events:
            raise BundleError("there are no events: nothing shows what happened to the data")
        open_events = any(isinstance(event, NonPrivateEvent) for event, _ in account.events)
        if not self.private and not open_events:
            raise BundleError("the statement says that there is no guarantee, but no event says what was not private")
        replayed = account.epsilon(stated.delta)
        if self.private and not abs(replayed - stated.epsilon) <= TOLERANCE * stated.epsilon + 1e-12:
            raise BundleError(
                f"the statement says epsilon = {stated.epsilon:.6g} at delta = {stated.delta:.3g}, but its events "
                f"give {replayed:.6g}: do not trust this bundle"
            )

    def to_json(self) -> dict[str, Any]:
        """Plain values for `privacy.json`."""
        return {
            "format": FORMAT,
            "guarantee": self.guarantee.to_json(),
            "method": self.method,
            "covers": list(self.covers),
            "touches": [to_plain(touch) for touch in self.touches],
            "caveats": list(self.caveats),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "PrivacyStatement":
        """Read what `to_json` wrote. Raises BundleError for anything else, a missing unit above all."""
        wanted = {"format", "guarantee", "method", "covers", "touches", "caveats"}
        if set(plain) != wanted:
            raise BundleError(f"privacy.json has the fields {sorted(wanted)}, got {sorted(plain)}")
        if plain["format"] is not FORMAT:
            raise BundleError(f"this version reads statements of format {FORMAT}, got {plain['format']!r:.80}")
        try:
            guarantee = Guarantee.from_json(plain["guarantee"])
        except PrivacyError as refused:
            raise BundleError(f"privacy.json states no guarantee that can be read: {refused}") from None
        for name in ("covers", "touches", "caveats"):
            if not isinstance(plain[name], list):
                raise BundleError(f"{name} must be a list, got {type(plain[name]).__name__}")
        touches = [
            {**each, "topic": OLD_TOPICS.get(str(each.get("topic")), each.get("topic"))}
            if isinstance(each, dict)
            else each
            for each in plain["touches"]
        ]
        return cls(
            guarantee=guarantee,
            method=check_text("method", plain["method"]),
            covers=tuple(plain["covers"]),
            touches=tuple(from_plain(DataTouch, touch, "a touch") for touch in touches),
            caveats=tuple(plain["caveats"]),
        )


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


def privacy_schema() -> dict[str, Any]:
    """The JSON Schema of `privacy.json`, for programs that are not ppspeech."""
    schema: dict[str, Any] = json.loads(resources.files("ppspeech.bundle").joinpath("privacy.schema.json").read_bytes())
    return schema

"""What a mechanism is, and the list of those that exist: each enters itself, with its event and its audit beside it.

    @register_event("noise")
    @dataclass(frozen=True)
    class NoiseEvent(PureLike): ...              what a release costs, and what it means for a group

    @mechanism("noise", NoiseEvent)
    @dataclass(frozen=True)
    class Noise:                                 relation, event, guarantee, release
        @classmethod
        def audit(cls, runs): ...                what `ppspeech audit noise` runs

Nothing else has to know: accounts book the event, files replay it, and bundles that hold it are audited by name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import ROOMS, Event
from ppspeech.privacy.guarantee import Guarantee, Released
from ppspeech.privacy.relation import Relation
from ppspeech.registry import Registry

if TYPE_CHECKING:
    from torch import Tensor

    from ppspeech.privacy.audit.report import AuditReport

Input = TypeVar("Input", contravariant=True)
Output = TypeVar("Output", covariant=True)
Made = TypeVar("Made", bound=type)

Audit = Callable[[int], "list[AuditReport]"]
"""runs -> reports; `runs` is how often sampling audits run the mechanism on each data set."""


Losses = Callable[[Any, int, bool], "Tensor"]
"""event, runs, present -> (runs,): privacy losses of fresh releases at the event's parameters, with a unit in or out.

They go through the mechanism's own `release`, or they would not notice what is wrong with it. A mechanism that has
`losses` can be attacked as a bundle used it (`ppspeech audit BUNDLE`).
"""


class Mechanism(Protocol[Input, Output]):
    """A way to release something about private data. It is a value: public numbers only, no data and no noise."""

    @property
    def relation(self) -> Relation:
        """What is protected, and what neighboring means."""

    @property
    def event(self) -> Event:
        """What one release costs."""

    @property
    def guarantee(self) -> Guarantee:
        """What one release promises."""

    def release(self, value: Input, /) -> Released[Output]:
        """The value with fresh noise, what it cost and what it promises."""


@dataclass(frozen=True)
class Registered:
    """A mechanism in the list.

    `audit` tries to refute its guarantee, and `losses` that of an event it books; None where nobody wrote one. `work`:
    how many numbers could be drawn in the time of one release.
    """

    kind: type[Any]
    events: tuple[type[Any], ...]
    audit: Audit | None
    losses: Losses | None
    work: int = 1


MECHANISMS: Registry[Registered] = Registry("mechanism", *ROOMS[1:], error=PrivacyError)


def mechanism(
    name: str, *events: type[Any], audit: Audit | None = None, losses: Losses | None = None, work: int = 1
) -> Callable[[Made], Made]:
    """Enter a mechanism under a name that is free; `audit` and `losses` are by default the class's own, if any."""

    def enter(kind: Made) -> Made:
        tried, drawn = audit or getattr(kind, "audit", None), losses or getattr(kind, "losses", None)
        MECHANISMS.enter(name, Registered(kind, events, tried, drawn, work))
        return kind

    return enter

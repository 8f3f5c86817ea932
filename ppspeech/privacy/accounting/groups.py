"""From a small unit to a large one: what an event per record means for a person with at most M records."""

from dataclasses import replace

from ppspeech.errors import PrivacyError
from ppspeech.privacy.accounting.events import Event, NonPrivateEvent, PureEvent, ZcdpEvent
from ppspeech.privacy.accounting.noise_events import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    GaussianEvent,
    LaplaceEvent,
)
from ppspeech.privacy.parameters import check_count
from ppspeech.privacy.relation import Relation, Unit


def group_privacy(event: Event, size: int, unit: Unit) -> Event:
    """The event seen by a unit that holds at most `size` of the event's own units.

    The bound `size` must be enforced (`limit_contributions`), not assumed. Additive noise is converted through its
    sensitivity, anything else through M epsilon or M^2 rho. Direct sensitivity of the large unit (per-speaker
    clipping) is usually far better.

    Raises:
        PrivacyError: for events known only by (epsilon, delta) or by sampling, which convert badly.
    """
    check_count("size", size)
    relation = Relation(unit, event.relation.adjacency)
    if isinstance(event, GaussianEvent):
        return GaussianEvent(event.noise_multiplier / size, relation)
    if isinstance(event, LaplaceEvent):
        return LaplaceEvent(event.scale / size, relation)
    if isinstance(event, DiscreteLaplaceEvent):
        return replace(event, l1=event.l1 * size, relation=relation)
    if isinstance(event, DiscreteGaussianEvent):
        return replace(event, l2=event.l2 * size, l1=event.l1 * size, relation=relation)
    if isinstance(event, NonPrivateEvent):
        return replace(event, relation=relation)
    pure, rho = event.pure(), event.zcdp()
    if pure is not None:
        return PureEvent(size * pure, relation)
    if rho is not None:
        return ZcdpEvent(size**2 * rho, relation)
    raise PrivacyError(
        f"event {event.type_name!r} for one {event.relation.unit} cannot be converted to one {unit}: "
        "bound the contribution of the larger unit directly"
    )

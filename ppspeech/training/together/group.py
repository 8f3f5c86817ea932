"""Parties of a group who train together: what each process does once everyone has met."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ppspeech.channel import Channel
from ppspeech.errors import PpspeechError
from ppspeech.network.group import Group, Identity
from ppspeech.protocols.sums import CuratorSession, PartySession, Signatures
from ppspeech.training.together.average import JointFit, JointTraining, join_models, local_minimizer

PARTY, CURATOR = "party", "curator"


def terms_of(group: Group) -> JointTraining:
    """The terms of training in a group's file, under `params: {training: ...}`.

    Raises:
        PpspeechError: if they are not there, not complete, or not for as many parties as there are.
    """
    plain: Any = group.params.get("training")
    if not isinstance(plain, dict):
        raise PpspeechError("the group's params hold no training: write params: {training: {model: logistic, ...}}")
    try:
        terms = JointTraining(**plain)
    except TypeError as error:
        raise PpspeechError(f"the group's training: {error}") from None
    parties = group.with_role(PARTY)
    if terms.count != len(parties):
        raise PpspeechError(f"the terms are for {terms.count} parties, the group has {', '.join(parties) or 'none'}")
    return terms


def train_alone(group: Group, name: str, x: Tensor, y: Tensor, groups: Tensor | None = None) -> Tensor:
    """Our own minimizer, before the others are met, so that nobody waits for it.

    Args:
        group: who takes part, and on which terms.
        name: who we are.
        x: our examples, `(n_j, d)`.
        y: their classes, `(n_j,)`.
        groups: whose example each is, where the unit is a speaker.
    """
    return local_minimizer(terms_of(group), x, y, group.with_role(PARTY).index(name), groups)


def take_part(channels: Mapping[str, Channel], group: Group, identity: Identity, name: str, local: Tensor) -> JointFit:
    """Be one party: bring what we trained alone, and hold the released model.

    Args:
        channels: to the curator, by name.
        group: who takes part, and on which terms.
        identity: signs our session key.
        name: who we are.
        local: from `train_alone`.

    Raises:
        RoundEndedError: if somebody is missing; nothing is released then.
    """
    terms = terms_of(group)
    (curator,) = channels.values()
    session = PartySession(curator, terms.count, Signatures(group, identity, PARTY))
    return join_models(terms, session.sum, local, group.with_role(PARTY).index(name))


def curate(channels: Mapping[str, Channel], group: Group) -> None:
    """Be the curator: add up what comes."""
    CuratorSession(channels).sum(terms_of(group).dimension)


def as_plain(fit: JointFit) -> dict[str, Any]:
    """A released model as JSON can hold it: parameters, what they promise, and the events behind it."""
    return {
        "model": type(fit.module).__name__,
        "theta": fit.theta.tolist(),
        "guarantee": fit.guarantee.to_json(),
        "account": fit.account.to_json(),
    }

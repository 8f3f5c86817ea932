"""Training together as protocols: every way to train is one, with a curator who adds up, and ends in a bundle."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ppspeech.bundle import Bundle, BundleConfig, DataTouch, PrivacyStatement, write_bundle
from ppspeech.errors import BundleError
from ppspeech.figures import Figure
from ppspeech.privacy import Guarantee
from ppspeech.privacy.accounting import Accountant
from ppspeech.protocols import PROTOCOLS, Party, register_protocol
from ppspeech.protocols.sums import CURATOR, PARTY, CuratorSession, PartySession, RoundEndedError
from ppspeech.registry import Registry
from ppspeech.training.private.record import counts_touch
from ppspeech.training.together.average import JointTraining
from ppspeech.training.together.descent import DescentTraining
from ppspeech.training.together.statistics import MixtureTraining, WordTraining
from ppspeech.training.together.terms import JointFit, JointTerms

CAVEATS = (
    "The guarantee holds against the curator and as many colluding parties as the assumptions say, not against more.",
)

METHODS: Registry[type[JointTerms]] = Registry("way to train together")
"""The terms of every protocol of this file, by its name."""


def _register(name: str, terms: type[JointTerms], functionality: str, leakage: str = "nothing else") -> None:
    protocol = register_protocol(
        name,
        functionality=f"{functionality}, to every party",
        leakage=f"to t colluders and the curator: the noisy sums of the others, whose noise alone meets the guarantee; "
        f"{leakage}",
        assumptions=(
            "parties follow the protocol; session keys are signed under pinned certificates, else the curator passes "
            "them on unchanged; a curator that denies a sum has it, at most three times over with one group's file; "
            "Diffie-Hellman on X25519, AES-256 in counter mode"
        ),
        terms=terms,
    )
    METHODS.enter(name, terms)

    @protocol.party(PARTY)
    def take_part(party: Party, data: Any, groups: Any = None, /, **plain: Any) -> dict[str, Any]:
        agreed, parties = _agreed(terms, party, plain)
        inputs = (data,) if groups is None else (data, groups)
        agreed.examine(party.place, *inputs)
        session: PartySession | None = None
        try:
            session = PartySession.of(party)
            fit = agreed.fit(session.sum, parties, party.place, *inputs)
        except RoundEndedError as error:
            raise RoundEndedError(f"{error}. {_what_now(session.sent if session else 0, agreed.rounds)}") from error
        return as_plain(agreed, fit)

    @protocol.party(CURATOR)
    def curate(party: Party, /, **plain: Any) -> str:
        agreed, parties = _agreed(terms, party, plain)
        session = CuratorSession.of(party)
        for _ in range(agreed.rounds):
            session.sum(agreed.dimension)
        return f"{agreed.rounds} sums of {parties} parties' vectors of {agreed.dimension} numbers, as released to them"


def _what_now(sent: int, rounds: int) -> str:
    """What parties should know when one of them is gone in the middle of training."""
    again = "To go on without one, take it out of the group's file (and out of sizes) and begin again"
    if not sent:
        return f"Nothing of ours was sent, and no privacy spent. {again}"
    return (
        f"{sent} of {rounds} vectors of ours were sent: what they cost is spent, whether their sums came back or not, "
        f"and beginning again adds. {again}"
    )


def _agreed(terms: type[JointTerms], party: Party, plain: Mapping[str, Any]) -> tuple[JointTerms, int]:
    """The terms, and how many parties there are."""
    parties = len(party.seats(PARTY))
    agreed = terms(**plain)
    agreed.check(parties)
    return agreed, parties


_register("train_average", JointTraining, "the weighted average of the parties' own convex models, with noise")
_register(
    "train_descent",
    DescentTraining,
    "a linear model of all parties' rows by noisy sums of clipped gradients",
    "the weights of every round, which are computed from the sums",
)
_register(
    "train_mixture",
    MixtureTraining,
    "a background model of all users' speech by noisy sums of EM statistics",
    "the model of every round, which is computed from the sums; without epsilon the sums are exact, and nothing is "
    "guaranteed",
)
_register(
    "train_words",
    WordTraining,
    "models of words from all users' recordings by noisy sums of Baum-Welch statistics",
    "the models of every round, which are computed from the sums",
)


def as_plain(terms: JointTerms, fit: JointFit) -> dict[str, Any]:
    """A released model as JSON can hold it: tensors, what they promise, and the events behind it."""
    tensors = terms.released(fit.module).state_dict()
    return {
        "model": terms.config().type,
        "tensors": {name: tensor.tolist() for name, tensor in tensors.items()},
        "guarantee": fit.guarantee.to_json(),
        "account": fit.account.to_json(),
        **({} if fit.own is None else {"own": fit.own.tolist()}),
    }


def model_of(terms: JointTerms, plain: Mapping[str, Any]) -> nn.Module:
    """The model that `as_plain` wrote."""
    model = terms.config().build()
    model.load_state_dict({name: torch.tensor(values) for name, values in plain["tensors"].items()})
    return model


def write_plain(
    folder: str | Path, terms: JointTerms, plain: Mapping[str, Any], metrics: Sequence[Figure] = ()
) -> Bundle:
    """Write what `as_plain` holds as a bundle; every party can, and the bundles are equal."""
    account = Accountant.from_json(plain["account"])
    return write_joint_bundle(
        folder,
        model=model_of(terms, plain),
        config=terms.config(),
        account=account,
        guarantee=Guarantee.from_json(plain["guarantee"]),
        touches=observed(terms, account),
        metrics=metrics,
    )


def observed(terms: JointTerms, account: Accountant) -> tuple[DataTouch, ...]:
    """What terms and sums show by themselves; whatever they do not show is not covered."""
    sums = sum(count for _, count in account.events)
    ended = DataTouch("early_stopping", "not_covered", f"{sums} sums were released, the terms say {terms.rounds}")
    if sums == terms.rounds:
        ended = DataTouch("early_stopping", "untouched", f"all {sums} sums that the terms say, and no more")
    found = [ended, DataTouch("threshold", "untouched", "none is released"), counts_touch(account.relation)]
    mfcc = terms.config().mfcc
    if mfcc is not None and mfcc.cmvn == "utterance":
        note = "each utterance is normalized by its own mean and variance"
        found.append(DataTouch("normalization", "untouched", note))
    else:
        note = "rows come as their owners prepared them, divided by a number that is in the terms"
        found.append(DataTouch("normalization", "not_covered", note))
    agreed = "the terms were agreed on; how they were found, they do not say"
    return (*found, DataTouch("tuning", "not_covered", agreed), DataTouch("labels", "not_covered", agreed), terms.begun)


def terms_of(name: str, plain: Mapping[str, Any]) -> JointTerms:
    """The terms of a training protocol from a group's file; `PpspeechError` unless they are complete and known."""
    PROTOCOLS[name].bind(CURATOR, (), plain)
    return METHODS[name](**plain)


def write_joint_bundle(
    folder: str | Path,
    *,
    model: nn.Module,
    config: BundleConfig,
    account: Accountant,
    guarantee: Guarantee,
    touches: Sequence[DataTouch] = (),
    metrics: Sequence[Figure] = (),
) -> Bundle:
    """Write what all parties hold; each can, and the bundles are equal. What no touch speaks about is not covered.
    Raises `BundleError` for a guarantee that is none, or anything a bundle refuses.
    """
    if not guarantee.proven:
        raise BundleError(f"this model has no guarantee to state ({guarantee}): joint bundles are for private ones")
    measured = (DataTouch("metrics", "not_covered", "the figures are exact results on test data"),) if metrics else ()
    statement = PrivacyStatement.of(
        account,
        config,
        (*touches, *measured),
        delta=guarantee.delta,
        assumptions=guarantee.assumptions,
        caveats=CAVEATS,
    )
    return write_bundle(folder, model=model, config=config, statement=statement, account=account, metrics=list(metrics))

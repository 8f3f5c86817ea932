"""Verification with mixtures on shares, against the plain verifier of `models`."""

from typing import Literal

import numpy as np
import pytest
import torch

from ppspeech.crypto.message_kinds import Kind as CryptoKind
from ppspeech.crypto.shares import ShareEngine, blank, record
from ppspeech.errors import ModelError, RangeError
from ppspeech.models.gaussian.mixture import GaussianMixture
from ppspeech.models.speakers import SpeakerVerifier
from ppspeech.protocols import PROTOCOLS, run_in_memory
from ppspeech.protocols.scores.mixture import MixturePlan, Mixtures, MixtureScorer
from ppspeech.protocols.speakers.verify import (
    Verification,
    client,
    mixture_server,
    verify_as_client,
    verify_as_server,
)
from tests.protocols.speaker_meeting import ask

FRAMES, D, PARTS, SPEAKERS, COHORT = 24, 4, 6, 3, 8
generator = np.random.default_rng(6)


BACKGROUND = Mixtures(
    np.log(generator.dirichlet(np.full(PARTS, 5.0), size=1)),
    generator.normal(size=(1, PARTS, D)),
    generator.uniform(0.5, 1.5, size=(1, PARTS, D)),
)
SPEECH, OTHERS = (
    Mixtures(
        np.repeat(BACKGROUND.log_weights, count, 0),
        BACKGROUND.means + generator.normal(0, 0.7, size=(count, PARTS, D)),
        np.repeat(BACKGROUND.covariances, count, 0),
    )
    for count in (SPEAKERS, COHORT)
)
MEAN, STD = generator.normal(0, 0.2, size=SPEAKERS + COHORT), generator.uniform(0.3, 0.6, size=SPEAKERS + COHORT)


def module(of: Mixtures) -> GaussianMixture:
    """The same mixtures as `models` has them."""
    batch = () if len(of.means) == 1 else (len(of.means),)
    made = GaussianMixture(PARTS, D, "diagonal", 1e-3, batch, torch.float64)
    means, spreads, weights = (
        torch.tensor(x.squeeze(0) if not batch else x) for x in (of.means, of.covariances, of.log_weights)
    )
    made.gaussians.set_moments_(means, spreads)
    with torch.no_grad():
        made.logits.copy_(weights)
    return made


def verifier(cohort: bool, normed: bool) -> SpeakerVerifier:
    made = SpeakerVerifier(module(BACKGROUND), module(SPEECH), module(OTHERS) if cohort else None)
    if normed:
        count = len(made.impostor_mean)
        made.impostor_mean.copy_(torch.tensor(MEAN[:count]))
        made.impostor_std.copy_(torch.tensor(STD[:count]))
    return made


def scorer_of(plan: MixturePlan, threshold: float, normed: bool) -> MixtureScorer:
    count = plan.models + plan.cohort
    norm = {"mean": MEAN[:count], "std": STD[:count]} if normed else {}
    return MixtureScorer.of(plan, BACKGROUND, SPEECH, threshold, cohort=OTHERS if plan.cohort else None, **norm)


def speech(speaker: int, frames: int) -> np.ndarray:
    """Frames drawn from a speaker's mixture, the same for the same arguments."""
    own = np.random.default_rng([speaker, frames])
    parts = own.choice(PARTS, frames, p=np.exp(SPEECH.log_weights[speaker]))
    return SPEECH.means[speaker, parts] + own.normal(size=(frames, D)) * np.sqrt(SPEECH.covariances[speaker, parts])


def plan_of(**changes: object) -> MixturePlan:
    fields = {"models": SPEAKERS, "norm": 12.0, "reach": 11, **changes}
    return MixturePlan(FRAMES, D, PARTS, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("cohort", [0, COHORT])
def test_decisions_are_those_of_the_plain_verifier(cohort: int, normed: bool) -> None:
    threshold = 1.0 if cohort else 0.2
    plan, plain = plan_of(cohort=cohort), verifier(bool(cohort), normed)
    job, scorer = Verification(plan), scorer_of(plan, threshold, normed)
    seen = set()
    for trial in range(6):
        frames, claimed = speech(trial % 3, FRAMES - 2 * trial), (trial + trial // 3) % 3
        score = float(plain(torch.tensor(frames)[None])[0, claimed].detach())
        got = ask(
            lambda met, x=frames, u=claimed: verify_as_client(met, job, x, u),
            lambda met: verify_as_server(met, job, scorer),
        )
        assert got[0] is None
        if abs(score - threshold) > 0.1:
            assert got[1] == (score >= threshold), score
            seen.add(got[1])
    assert seen == {True, False}


@pytest.mark.parametrize("joined", ["sum", "max"])
def test_shared_ratios_are_close_to_the_plain_ones(joined: Literal["sum", "max"]) -> None:
    """Both parties' shares, joined: for this test only."""
    plan = plan_of(cohort=COHORT, joined=joined)
    scorer, frames = scorer_of(plan, 0.0, normed=False), speech(1, 20)
    cost = record(lambda engine: plan.claimed_scores(engine, blank(FRAMES, plan.product.columns), 1))

    def shares(met, side):  # type: ignore[no-untyped-def]
        with met.session():
            engine = ShareEngine(met.channel, met.setup, cost)
            claimed = None if side is scorer.weights else 1
            return plan.claimed_scores(engine, met.multiply(plan.product, side), claimed).residues

    one, other, *_ = ask(lambda met: shares(met, plan.rows(frames)), lambda met: shares(met, scorer.weights))
    got = plan.scale.decode(plan.total_ring.to_signed(plan.total_ring.join(one, other))) / 20
    x = torch.tensor(frames)[None]
    plain = verifier(cohort=True, normed=False)
    joints = [plain.ubm.joint(x)[0], *(m.joint(x)[0] for m in (plain.speakers, plain.cohort) if m is not None)]
    over = (lambda j: j.logsumexp(-1)) if joined == "sum" else (lambda j: j.amax(-1))
    background, speakers, others = (over(j).mean(0) for j in joints)
    wanted = (torch.cat([speakers[1:2], others]) - background).detach().numpy()
    assert np.abs(got - wanted).max() < 0.05


def test_full_covariance_decides_alike() -> None:
    full = [Mixtures(m.log_weights, m.means, m.covariances[..., None] * np.eye(D)) for m in (BACKGROUND, SPEECH)]
    plan = plan_of(covariance="full")
    job, scorer = Verification(plan, "client"), MixtureScorer.of(plan, *full, 0.2)
    plain = verifier(cohort=False, normed=False)
    for claimed in range(SPEAKERS):
        frames = speech(0, 22)
        score = float(plain(torch.tensor(frames)[None])[0, claimed].detach())
        assert abs(score - 0.2) > 0.05
        got = ask(
            lambda met, x=frames, u=claimed: verify_as_client(met, job, x, u),
            lambda met: verify_as_server(met, job, scorer),
        )
        assert got[:2] == (score >= 0.2, None)


@pytest.mark.parametrize("cohort", [0, COHORT])
def test_every_claim_and_length_has_the_transcript_of_the_formula(cohort: int) -> None:
    plan = plan_of(cohort=cohort)
    job, scorer = Verification(plan), scorer_of(plan, 0.5, normed=True)
    shapes = []
    for claimed, frames in ((0, 24), (2, 5)):
        *_, ours, _ = ask(
            lambda met, u=claimed, t=frames: verify_as_client(met, job, speech(u, t), u),
            lambda met: verify_as_server(met, job, scorer),
        )
        shapes.append(ours.shape())
    assert shapes[0] == shapes[1]
    after = [(way, size) for way, kind, size in shapes[0] if kind != CryptoKind.RESUME]
    up, down = (sum(size for way, size in after if way == which) for which in ("sent", "received"))
    cost, product = job.cost, plan.product.job
    assert up == cost.bytes_second + cost.offline_bytes_second + product.query_bytes
    assert down == cost.bytes_first + cost.offline_bytes_first + product.reply_bytes


def test_bad_input_is_refused() -> None:
    plan = plan_of()
    job = Verification(plan)
    with pytest.raises(ModelError, match="client or the server"):
        Verification(plan, "nobody")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="was made for"):
        verify_as_server(None, job, scorer_of(plan_of(joined="max"), 0.0, False))  # type: ignore[arg-type]
    for frames, claimed in ((np.zeros((25, D)), 0), (np.zeros((3, D)), 3), (np.full((3, D), 9.0), 0)):
        with pytest.raises(RangeError):
            verify_as_client(None, job, frames, claimed)  # type: ignore[arg-type]


def test_it_runs_by_name_over_a_bare_channel() -> None:
    public = {"frames": 24, "dimensions": D, "components": PARTS, "models": SPEAKERS, "norm": 12.0, "reach": 11}
    given = [{k: v.tolist() for k, v in vars(m).items()} for m in (BACKGROUND, SPEECH)]
    said = run_in_memory(
        [
            ("client", lambda party: client(party, speech(2, 24).tolist(), 2, **public)),
            ("server", lambda party: mixture_server(party, *given, 0.1, **public)),
        ]
    )
    assert said == ["the other party knows", "accepted"]
    assert list(PROTOCOLS["speaker_verification_mixture"].parties) == ["client", "server"]


def test_costs_are_recorded_for_many_models_and_refused_for_sizes_that_nobody_could_run() -> None:
    """Sizes may be a peer's: what is not read is not allocated, and what would be is bounded."""
    many = Verification(MixturePlan(300, 39, 64, 1000))
    assert many.cost.total_bytes == 84_226_567
    with pytest.raises(RangeError, match="smaller sizes"):
        _ = Verification(MixturePlan(4096, 1, 20_000, 1, 64)).cost

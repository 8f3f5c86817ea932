"""Verification on shares: the plain decision, the same conversation whoever is claimed, and the limit that it has."""

from typing import Literal

import numpy as np
import pytest
import torch
from scipy import stats

from ppspeech.crypto.message_kinds import Kind as CryptoKind
from ppspeech.errors import BadCiphertextError, ModelError, PpspeechError, ProtocolError, RangeError
from ppspeech.models.speakers import t_norm
from ppspeech.network import Transcript, memory_pair, run_together, socket_pair
from ppspeech.protocols import PROTOCOLS, Party
from ppspeech.protocols.meeting import Meeting
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.scores.linear import LinearColumns, LinearPlan, LinearScorer, ScoreNorm
from ppspeech.protocols.speakers.verify import Verification, client, server, verify_as_client, verify_as_server
from tests.crypto.pairs import lasting_setup
from tests.protocols.speaker_meeting import ask, histogram, lasting_key, received, unit

generator = np.random.default_rng(11)
MODELS = unit(generator.normal(size=(32, 6)))
COHORT = unit(generator.normal(size=(32, 10)))


def job_and_scorer(
    threshold: float, *, cohort: bool = False, recipient: Literal["client", "server"] = "server"
) -> tuple[Verification, LinearScorer]:
    plan = LinearPlan(32, 6, 10 if cohort else 0, reach=3)
    scorer = LinearScorer.of(plan, LinearColumns.of(MODELS, COHORT if cohort else None), threshold)
    return Verification(plan, recipient), scorer


def voice(speaker: int, likeness: float) -> np.ndarray:
    return unit(likeness * MODELS[:, speaker] + 0.1 * generator.normal(size=32))


def decide(job: Verification, scorer: LinearScorer, embedding: np.ndarray, claimed: int) -> tuple[object, object]:
    return ask(
        lambda met: verify_as_client(met, job, embedding, claimed), lambda met: verify_as_server(met, job, scorer)
    )[:2]


@pytest.mark.parametrize("recipient", ["client", "server"])
def test_the_named_party_alone_learns_the_decision(recipient: Literal["client", "server"]) -> None:
    job, scorer = job_and_scorer(0.6, recipient=recipient)
    true, false = decide(job, scorer, voice(2, 1.0), 2), decide(job, scorer, voice(2, 1.0), 3)
    assert (true, false) == (((True, None), (False, None)) if recipient == "client" else ((None, True), (None, False)))


@pytest.mark.parametrize("threshold", [2.0, 0.0, -1.0])
def test_t_norm_decides_as_in_the_clear(threshold: float) -> None:
    job, scorer = job_and_scorer(threshold, cohort=True)
    for trial in range(6):
        embedding, claimed = voice(trial, float(generator.uniform(-0.5, 0.8))), trial
        plain = t_norm(torch.tensor(embedding[None] @ MODELS), torch.tensor(embedding[None] @ COHORT))[0, claimed]
        assert decide(job, scorer, embedding, claimed)[1] == (float(plain) >= threshold)


def test_z_norm_decides_as_in_the_clear() -> None:
    mean, std = generator.normal(0, 0.1, size=6), generator.uniform(0.1, 0.5, size=6)
    plan = LinearPlan(32, 6, reach=5)
    scorer = LinearScorer.of(plan, LinearColumns.of(MODELS, norm=ScoreNorm(mean, std)), 1.2)
    for trial in range(6):
        embedding = voice(trial, float(generator.uniform(-0.2, 0.5)))
        plain = (embedding @ MODELS[:, trial] - mean[trial]) / std[trial]
        assert decide(Verification(plan), scorer, embedding, trial)[1] == (plain >= 1.2)


@pytest.mark.parametrize("cohort", [False, True])
def test_every_claim_has_the_same_transcript_and_it_is_that_of_the_formula(cohort: bool) -> None:
    job, scorer = job_and_scorer(0.5, cohort=cohort)
    shapes = []
    for claimed in range(job.plan.models):
        *_, ours, _ = ask(
            lambda met, u=claimed: verify_as_client(met, job, voice(u, 1.0), u),
            lambda met: verify_as_server(met, job, scorer),
        )
        shapes.append(ours.shape())
    assert all(shape == shapes[0] for shape in shapes)
    after = [(way, size) for way, kind, size in shapes[0] if kind != CryptoKind.RESUME]
    up, down = (sum(size for way, size in after if way == which) for which in ("sent", "received"))
    cost, product = job.cost, job.plan.product.job
    assert up == cost.bytes_second + cost.offline_bytes_second + product.query_bytes
    assert down == cost.bytes_first + cost.offline_bytes_first + product.reply_bytes


def test_the_server_cannot_tell_voices_or_claims_apart() -> None:
    """Two-sample chi-square at 1e-4 on all bytes the server receives, and its power."""
    job, scorer = job_and_scorer(0.5)
    counts = []
    for speaker in (0, 5):
        said = []
        for _ in range(3):
            *_, theirs = ask(
                lambda met, u=speaker: verify_as_client(met, job, MODELS[:, u], u),
                lambda met: verify_as_server(met, job, scorer),
            )
            kinds = {entry.kind for entry in theirs.entries} - {int(CryptoKind.RESUME)}
            said.append(received(theirs, *kinds))
        counts.append(histogram(np.concatenate(said)))
    assert stats.chi2_contingency(np.array(counts) + 1).pvalue > 1e-4
    counts[0][7] += counts[0].sum() // 20
    assert stats.chi2_contingency(np.array(counts) + 1).pvalue < 1e-4


def test_the_clients_share_of_the_scores_is_uniform() -> None:
    """Chi-square at 1e-4 on high and low bytes of the client's residues for one voice again and again; sums are not."""
    plan = LinearPlan(32, 200, reach=3)
    models = np.repeat(MODELS[:, :1], 200, axis=1)
    scorer = LinearScorer.of(plan, LinearColumns.of(models), 0.5)
    row = plan.rows(MODELS[:, 1])
    mine, sums = [], []
    for _ in range(20):
        one, other, *_ = ask(
            lambda met: met.multiply(plan.product, row)[0], lambda met: met.multiply(plan.product, scorer.weights)[0]
        )
        mine.append(one)
        sums.append(plan.ring.join(one, other))
    residues = np.concatenate(mine)
    for shift in (0, 13):
        assert (
            stats.chisquare(histogram(((residues >> np.uint64(shift)) & np.uint64(255)).astype(np.uint8))).pvalue > 1e-4
        )
    assert len(np.unique(np.concatenate(sums))) < 10  # the score itself is one number, up to rounding


class Shifting(Meeting):
    """A client that follows the protocol, except that it adds 1 to its share of every score."""

    def multiply(self, plan, features):  # type: ignore[no-untyped-def]
        ring = plan.precision.result.ring
        shift = plan.precision.result.encode(np.array([1.0])).view(np.uint64)
        return ring.reduce(super().multiply(plan, features) + shift)


@pytest.mark.parametrize("recipient", ["client", "server"])
def test_an_active_client_can_shift_its_share_and_is_accepted(recipient: Literal["client", "server"]) -> None:
    """The stated limit of the default; `test_speaker_hardened` makes the same attack on what withstands it."""
    job, scorer = job_and_scorer(0.5, recipient=recipient)
    stranger = unit(generator.normal(size=32))
    assert float(stranger @ MODELS[:, 1]) < 0.5
    honest = decide(job, scorer, stranger, 1)
    *attacked, _, _ = ask(
        lambda met: verify_as_client(met, job, stranger, 1),
        lambda met: verify_as_server(met, job, scorer),
        wrap=lambda met: Shifting(met.channel, met.setup, met.lattice),
    )
    informed = 0 if recipient == "client" else 1
    assert honest[informed] is False
    assert attacked[informed] is True
    assert "shift its share" in PROTOCOLS["speaker_verification"].assumptions


class Stretching(Meeting):
    """A client that follows the protocol, except that it sends the signs of its voice: each is within the limit."""

    def multiply(self, plan, features):  # type: ignore[no-untyped-def]
        return super().multiply(plan, np.sign(features))


def test_an_active_client_can_stretch_its_voice_and_is_accepted() -> None:
    """The other stated limit: an authenticated share of its score would not help. Codes have one length."""
    job, scorer = job_and_scorer(0.5)
    stranger = unit(0.3 * MODELS[:, 1] + unit(generator.normal(size=32)))
    assert 0.2 < float(stranger @ MODELS[:, 1]) < 0.5
    assert decide(job, scorer, stranger, 1)[1] is False
    *attacked, _, _ = ask(
        lambda met: verify_as_client(met, job, stranger, 1),
        lambda met: verify_as_server(met, job, scorer),
        wrap=lambda met: Stretching(met.channel, met.setup, met.lattice),
    )
    assert attacked[1] is True
    assert "longer vector" in PROTOCOLS["speaker_verification"].assumptions


@pytest.mark.parametrize(
    ("embedding", "claimed"),
    [
        (np.zeros(31), 0),
        (np.full(32, np.inf), 0),
        (np.ones(32), 0),
        (np.zeros(32), 6),
        (np.zeros(32), -1),
        (np.zeros(32), "one"),
    ],
)
def test_bad_input_is_refused_before_anything_is_sent(embedding: np.ndarray, claimed: int) -> None:
    job, _ = job_and_scorer(0.5)
    here, there = memory_pair()
    record = Transcript(here)
    with pytest.raises(RangeError):
        verify_as_client(Meeting(record, lasting_setup()[1], lasting_key()[0]), job, embedding, claimed)
    assert record.messages == 0
    here.close()
    there.close()


def test_a_query_of_another_plan_or_garbage_ends_the_session() -> None:
    job, scorer = job_and_scorer(0.5)
    other = Verification(LinearPlan(32, 6, reach=4))
    with pytest.raises(BadCiphertextError):
        ask(lambda met: verify_as_client(met, other, MODELS[:, 0], 0), lambda met: verify_as_server(met, job, scorer))

    def garbage(met: Meeting) -> None:
        with met.session():
            met.channel.send(Kind.QUERY, bytes(5))

    with pytest.raises(ProtocolError):
        ask(garbage, lambda met: verify_as_server(met, job, scorer))


def test_a_scorer_of_another_plan_is_refused() -> None:
    job, scorer = job_and_scorer(0.5)
    with pytest.raises(ModelError, match="was made for"):
        verify_as_server(None, Verification(LinearPlan(32, 7)), scorer)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="client or the server"):
        Verification(job.plan, "everybody")  # type: ignore[arg-type]


def test_it_runs_by_name_over_a_bare_socket() -> None:
    public = {"features": 3, "models": 2, "recipient": "client"}
    models = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    said = run_together(
        lambda c: client(Party("client", {"server": c}), [0.9, 0.1, 0.0], 0, **public),
        lambda c: server(Party("server", {"client": c}), models, 0.5, **public),
        socket_pair(),
    )
    assert said == ("accepted", "the other party knows")
    assert list(PROTOCOLS["speaker_verification"].parties) == ["client", "server"]
    for terms, said_of in (({"color": "red"}, "color"), ({"features": 3}, "models")):
        with pytest.raises(PpspeechError, match=said_of):
            PROTOCOLS["speaker_verification"].bind("client", [[0.0], 0], terms)
    with pytest.raises(ModelError, match="LinearPlan"):
        client(Party("client", {}), [0.0], 0, color="red")

"""The hardened verification: the plain decision for honest clients, a no for those who bend what they hold."""

import numpy as np
import pytest
from scipy import stats

from ppspeech.channel import Channel
from ppspeech.crypto.transfer import offer_keys
from ppspeech.errors import ModelError, NotInGroupError, ProtocolError, RangeError
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import PROTOCOLS, run_in_memory
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.scores.linear import LinearColumns, ScoreNorm
from ppspeech.protocols.speakers import hardened as speaker_hardened
from ppspeech.protocols.speakers.hardened import (
    HardenedScorer,
    HardenedTerms,
    client,
    judge_as_server,
    prove_as_client,
    server,
)
from tests.protocols.speaker_meeting import unit

generator = np.random.default_rng(8)
PLAN = HardenedTerms(features=24, models=3, limit=0.6, level_bits=5, score_bits=10, reach=2)
MODELS = unit(generator.normal(size=(24, 3)))
SCORER = HardenedScorer.of(PLAN, LinearColumns.of(MODELS), 0.5)


def voice(speaker: int, likeness: float) -> np.ndarray:
    return unit(likeness * MODELS[:, speaker] + 0.1 * generator.normal(size=24)).clip(-0.6, 0.6)


def judged(embedding: np.ndarray, claimed: int) -> bool:
    return run_together(lambda c: prove_as_client(c, PLAN, embedding, claimed), lambda c: judge_as_server(c, SCORER))[1]


def test_honest_clients_get_the_plain_decision() -> None:
    decisions = set()
    for trial in range(12):
        embedding, claimed = voice(trial % 3, float(generator.uniform(-0.2, 1.0))), trial % 3
        margin = float(embedding @ MODELS[:, claimed]) - 0.5
        if abs(margin) > 0.05:
            assert judged(embedding, claimed) == (margin > 0)
            decisions.add(margin > 0)
    assert decisions == {True, False}


def test_scores_are_within_the_stated_error() -> None:
    for _ in range(50):
        embedding = generator.uniform(-0.6, 0.6, size=24)
        bits = PLAN.levels(embedding)
        scores = (SCORER.constants + SCORER.parts[bits].sum(axis=0)) * PLAN.unit
        assert np.abs(scores - (embedding @ MODELS - 0.5)).max() <= SCORER.error


def test_z_norm_is_folded_in() -> None:
    norm = ScoreNorm(np.array([0.1, 0.0, -0.1]), np.array([0.5, 1.0, 0.8]))
    plan = HardenedTerms(24, 3, limit=0.6, level_bits=8, score_bits=16, reach=3)
    scorer = HardenedScorer.of(plan, LinearColumns.of(MODELS, norm=norm), 0.2)
    embedding = voice(0, 1.0)
    scores = (scorer.constants + scorer.parts[plan.levels(embedding)].sum(axis=0)) * plan.unit
    assert np.abs(scores - ((embedding @ MODELS - norm.mean) / norm.std - 0.2)).max() < 0.05


@pytest.mark.parametrize("moved", [[0], [1, 2, 3], [0, 1, 2, 3]])
def test_a_shifted_share_is_rejected(moved: list[int]) -> None:
    """The attack that the default accepts (`test_speaker_verification`): the row, its openers, or both are moved."""

    def shifted(keys: np.ndarray, models: int) -> np.ndarray:
        pads = speaker_hardened._pads(keys, models)
        pads[0][:, moved] += np.uint64(round(1.5 / PLAN.unit))  # would lift the score far above the threshold
        return pads

    stranger = -voice(0, 1.0)
    assert _judged_with(stranger, shifted) is False
    assert _judged_with(stranger, speaker_hardened._pads) is False


def _judged_with(embedding: np.ndarray, pads, opened: int = 0) -> bool:  # type: ignore[no-untyped-def]
    """A client that claims model 0, whose pads are not those it was given, or that opens another model's table."""

    def attacker(channel: Channel) -> None:
        voice_bits = PLAN.levels(embedding)
        claim = np.zeros(PLAN.claim_bits, np.bool_)
        keys, _ = speaker_hardened.choose_keys(channel, np.concatenate([voice_bits, claim]))
        mine = pads(keys[: PLAN.voice_bits], PLAN.models)
        steps = channel.receive(Kind.MASKED_INPUTS, 8 * mine.size)
        mine[voice_bits] += np.frombuffer(steps, "<u8").reshape(mine.shape)[voice_bits]
        sums = mine.sum(axis=0, dtype=np.uint64)[opened]
        tables = channel.receive(Kind.DECISION_TABLE, PLAN.models * 16 << PLAN.score_bits)
        row = int(sums[0]) & ((1 << PLAN.score_bits) - 1)
        key = speaker_hardened._model_key(keys[PLAN.voice_bits :], opened)
        opener = speaker_hardened._row_keys(sums[None, 1:], key, np.array([row]))
        at = 16 * ((opened << PLAN.score_bits) + row)
        label = np.frombuffer(tables[at : at + 16], np.uint8) ^ opener[0]
        channel.send(Kind.DECISION, label.tobytes())

    return run_together(attacker, lambda c: judge_as_server(c, SCORER))[1]


def test_the_attackers_frame_itself_is_sound() -> None:
    """Without a shift the same program is an honest client: the attack fails for its shift, not for its code."""
    assert _judged_with(voice(0, 1.0), speaker_hardened._pads) is True


def test_only_the_claimed_models_table_opens() -> None:
    """The client's sums point to a row of every model: what keeps the others shut is the key of the claim alone."""
    own = voice(1, 1.0)
    assert judged(own, 1) is True
    assert _judged_with(own, speaker_hardened._pads, opened=1) is False


def test_the_secrets_that_bind_a_row_are_of_full_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the 64 bits of α is set about half the time: in 120 draws 30 to 90 times, but for a chance of 1e-6.

    With all keys known here, the steps between the pads of a bit give α times that bit's part of the score.
    """
    found = []
    for _ in range(40):
        seen: list[np.ndarray] = []

        def offered(channel: Channel, count: int, seen: list[np.ndarray] = seen) -> tuple[np.ndarray, object]:
            keys, rest = offer_keys(channel, count)
            seen.append(keys)
            return keys, rest

        monkeypatch.setattr(speaker_hardened, "offer_keys", offered)
        here, there = memory_pair()
        record = Transcript(there, keep_payloads=True)
        run_together(
            lambda c: prove_as_client(c, PLAN, voice(0, 1.0), 0),
            lambda _, r=record: judge_as_server(r, SCORER),
            (here, there),
        )
        sent = next(entry.payload for entry in record.entries if entry.kind == Kind.MASKED_INPUTS)
        none, one = (speaker_hardened._pads(seen[0][: PLAN.voice_bits, bit], PLAN.models) for bit in (0, 1))
        products = np.frombuffer(sent or b"", "<u8").reshape(none.shape) - none + one
        bit, model = np.argwhere(SCORER.parts % 2 != 0)[0]
        inverse = pow(int(SCORER.parts[bit, model]), -1, 2**64)
        found += [int(product) * inverse % 2**64 for product in products[bit, model, 1:]]
    ones = [sum(alpha >> place & 1 for alpha in found) for place in range(64)]
    assert len(found) == 120
    assert 30 <= min(ones) <= max(ones) <= 90


def test_a_made_up_label_is_rejected() -> None:
    def forger(channel: Channel) -> None:
        speaker_hardened.choose_keys(channel, np.zeros(PLAN.voice_bits + PLAN.claim_bits, np.bool_))
        channel.receive(Kind.MASKED_INPUTS, at_most=10**7)
        channel.receive(Kind.DECISION_TABLE, at_most=10**7)
        channel.send(Kind.DECISION, bytes(16))

    assert run_together(forger, lambda c: judge_as_server(c, SCORER))[1] is False


def test_the_cost_is_that_of_the_formula_whoever_is_claimed() -> None:
    shapes = []
    for claimed in range(3):
        here, there = memory_pair()
        record = Transcript(here)
        run_together(
            lambda _, u=claimed, r=record: prove_as_client(r, PLAN, voice(u, 1.0), u),
            lambda c: judge_as_server(c, SCORER),
            (here, there),
        )
        shapes.append(record.shape())
        assert (record.bytes_up, record.bytes_down) == (PLAN.bytes_up, PLAN.bytes_down)
    assert shapes[0] == shapes[1] == shapes[2]


def test_labels_tell_the_client_nothing() -> None:
    """Chi-square at 1e-4 on the nibbles of the labels of accepted trials."""
    said = b""
    for _ in range(15):
        here, there = memory_pair()
        record = Transcript(there, keep_payloads=True)
        run_together(
            lambda c: prove_as_client(c, PLAN, MODELS[:, 0].clip(-0.6, 0.6), 0),
            lambda _, r=record: judge_as_server(r, SCORER),
            (here, there),
        )
        said += record.entries[-1].payload or b""
    assert stats.chisquare(np.bincount(np.frombuffer(said, np.uint8) >> 4, minlength=16)).pvalue > 1e-4
    assert len(said) == 240


def test_scores_that_could_wrap_around_are_refused() -> None:
    """Else an active client would choose numbers at the limits that wrap a low score into a high one."""
    with pytest.raises(RangeError, match="raise its reach"):
        HardenedScorer.of(HardenedTerms(24, 3, limit=0.6, reach=0), LinearColumns.of(MODELS), 0.5)


@pytest.mark.parametrize(
    "wrong", [{"features": 0}, {"models": 0}, {"limit": 0.0}, {"level_bits": 0}, {"level_bits": 13}, {"score_bits": 17}]
)
def test_plans_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises((ModelError, RangeError)):
        HardenedTerms(**{"features": 4, "models": 2, **wrong})  # type: ignore[arg-type]


def test_bad_input_is_refused() -> None:
    with pytest.raises(ModelError, match="no cohort"):
        HardenedScorer.of(PLAN, LinearColumns.of(MODELS, MODELS), 0.5)
    for embedding, claimed in ((np.zeros(23), 0), (np.ones(24), 0), (np.full(24, np.nan), 0), (np.zeros(24), 3)):
        with pytest.raises(RangeError):
            prove_as_client(memory_pair()[0], PLAN, embedding, claimed)


def test_points_that_are_none_end_the_session() -> None:
    def broken(channel: Channel) -> None:
        channel.receive(201, 32)
        channel.send(202, bytes(64 * (PLAN.voice_bits + PLAN.claim_bits)))

    with pytest.raises(NotInGroupError):
        run_together(broken, lambda c: judge_as_server(c, SCORER))
    with pytest.raises(ProtocolError):
        run_together(lambda c: c.send(202, b""), lambda c: judge_as_server(c, SCORER))


def test_it_runs_by_name_over_a_bare_channel() -> None:
    public = {"features": 2, "models": 1, "limit": 1.0, "score_bits": 8}
    said = run_in_memory(
        [
            ("client", lambda party: client(party, [1.0, 0.0], 0, **public)),
            ("server", lambda party: server(party, [[1.0, 0.0]], 0.5, **public)),
        ]
    )
    assert said == ["the server knows", "accepted"]
    assert "may do anything" in PROTOCOLS["speaker_verification_hardened"].assumptions

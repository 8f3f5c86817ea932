"""Encrypted keyword recognition: the same words and scores as in the clear, and nothing else leaves."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from ppspeech.arrays import Reals
from ppspeech.channel import Channel
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto.shares import read_text
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.errors import PpspeechError, RangeError
from ppspeech.network import Transcript, memory_pair, run_together, socket_pair
from ppspeech.protocols import Kind, Party
from ppspeech.protocols.meeting import meet_as_client, meet_as_server
from ppspeech.protocols.scores.states import WordArrays, WordShape
from ppspeech.protocols.words import FAR, KeywordJob, answer, encode_models, keyword_stream, recognize, share_scores
from ppspeech.protocols.words.keyword import client, server
from ppspeech.protocols.words.keyword_stream import Hearing, StreamModels, TakenModels, follow
from tests.protocols.word_reference import made_models, made_utterance, plain_models, plain_scores, plain_word

MEETING = {Kind.LATTICE_KEY, CryptoKind.BASE_POINT, CryptoKind.BASE_REPLY, CryptoKind.BASE_COLUMNS, CryptoKind.RESUME}
"""Messages before any work: once for any number of jobs."""

ONLINE = {Kind.QUERY, CryptoKind.FLIGHT}
"""Messages from the client that depend on its voice."""

SURE = 0.5
"""Nats by which a word must win in the clear, where its encrypted scores are right to half of that."""


def asking(channel: Channel) -> Party:
    return Party("client", {"server": channel})


def answering(channel: Channel) -> Party:
    return Party("server", {"client": channel})


def sure_utterances(models: WordArrays, frames: int, count: int) -> list[Reals]:
    """The first utterances, by seed, whose word wins by enough for an encrypted answer to be right."""
    found: list[Reals] = []
    for seed in range(50):
        utterance = made_utterance(models, frames, seed)
        best = np.sort(plain_scores(models, utterance))[::-1]
        if len(best) == 1 or best[0] - best[1] > SURE:
            found.append(utterance)
        if len(found) == count:
            return found
    raise AssertionError(f"only {len(found)} of 50 utterances have a sure word")


SHAPES: list[dict[str, Any]] = [
    {},
    {"operation": "viterbi"},
    {"ends": (0, 1, 2)},
    {"terms": "diagonal", "dimensions": 5, "reject": True},
    {"moves": (0, 1, 2), "ends": (0, 1, 2), "operation": "viterbi"},
    {"components": 3, "ends": (2,)},
    {"moves": (-1, 0, 1), "starts": (0, 2), "ends": (1, 2), "reject": True},
    {"states": 1, "words": 1, "moves": (0,)},
    {"bits": 21, "words": 5},
    {"bits": 30},
    {"radius": 1.5},
    {"terms": "linear", "dimensions": 9, "states": 1, "moves": (0,)},
]


def encrypted_scores(models: WordArrays, job: KeywordJob, utterances: list[Reals]) -> Reals:
    """The scores that both parties' shares add up to: nobody sees them outside a test."""
    shape = models.shape

    def ask(channel: Channel) -> Any:
        met = meet_as_client(channel)
        with met.session():
            engine = ShareEngine(channel, met.setup, job.shares_cost)
            frames = np.concatenate([shape.padded_monomials(each) for each in utterances])
            emissions = job.by_utterance(met.multiply(job.plan, frames))
            last = np.array([len(each) for each in utterances]) - shape.shortest
            return share_scores(engine, job, None, emissions, last)

    def help_client(channel: Channel) -> Any:
        met = meet_as_server(channel)
        with met.session():
            engine = ShareEngine(channel, met.setup, job.shares_cost)
            emissions = job.by_utterance(met.multiply(job.plan, encode_models(models, job.utterances)))
            return share_scores(engine, job, models, emissions, None)

    here, there = run_together(ask, help_client)
    ring = shape.scale.ring
    taken_off = models.highest * np.array([len(each) for each in utterances])
    return shape.scale.decode(ring.to_signed(ring.join(here, there))) + taken_off[:, None]


AHEAD = [(sizes, ahead) for sizes in SHAPES if sizes.get("moves", (0,))[0] == 0 for ahead in (2, FAR)]


@pytest.mark.parametrize(("sizes", "ahead"), [(sizes, 1) for sizes in SHAPES] + AHEAD, ids=str)
def test_scores_are_those_in_the_clear(sizes: dict[str, Any], ahead: int) -> None:
    models = made_models(**sizes)
    utterances = [made_utterance(models, frames, seed=frames) for frames in (models.shape.shortest, 7, 12)]
    scores = encrypted_scores(models, KeywordJob(models.shape, 3, ahead), utterances)
    expected = np.stack([plain_scores(models, each) for each in utterances])
    # Every log-add is off by up to 1/8 nat, and by far less on average; a maximum by the rounding of shares alone.
    tolerance = 0.35 if models.shape.operation == "forward" else 0.12
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_the_client_learns_the_word(sizes: dict[str, Any]) -> None:
    models = made_models(seed=3, **sizes)
    params = models.shape.to_params()
    for utterance in sure_utterances(models, 9, count=2):
        answers = run_together(
            lambda c, u=utterance: client(asking(c), u.tolist(), shape=params),
            lambda c: server(answering(c), plain_models(models), shape=params),
        )
        assert answers == (plain_word(models, utterance), None)


def test_many_utterances_in_one_meeting_over_a_socket() -> None:
    models = made_models(seed=5, words=4)
    job = KeywordJob(models.shape, utterances=3)
    batches = [[sure_utterances(models, 5 + n, count=2)[b] for n in range(3)] for b in range(2)]

    def ask(channel: Channel) -> list[list[str | None]]:
        met = meet_as_client(channel)
        with met.session():
            return [recognize(met, job, batch) for batch in batches]

    def help_client(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            weights = encode_models(models, 3)
            for _ in batches:
                answer(met, job, models, weights)

    answers, _ = run_together(ask, help_client, socket_pair())
    assert answers == [[plain_word(models, utterance) for utterance in batch] for batch in batches]


@pytest.mark.parametrize("sizes", [SHAPES[0], SHAPES[3], SHAPES[4], SHAPES[5], SHAPES[6]], ids=str)
def test_the_answer_while_speaking_is_the_same(sizes: dict[str, Any]) -> None:
    models = made_models(seed=8, **sizes)
    utterances = [sure_utterances(models, frames, count=1)[0] for frames in (12, models.shape.shortest, 6)]

    def ask(channel: Channel) -> list[str | None]:
        met = meet_as_client(channel)
        words = []
        with met.session():
            taken = TakenModels(models.shape)
            for utterance in utterances:
                hearing = Hearing(met, taken)
                for frame in utterance:
                    hearing.hear(frame)
                words.append(hearing.finish())
                with pytest.raises(PpspeechError, match="over"):
                    hearing.hear(utterance[0])
        return words

    def help_client(channel: Channel) -> None:
        met = meet_as_server(channel)
        hidden = StreamModels(models)
        with met.session():
            for _ in utterances:
                follow(met, hidden)

    words, _ = run_together(ask, help_client)
    assert words == [plain_word(models, utterance) for utterance in utterances]


def test_the_programs_of_a_stream_run_on_plain_inputs() -> None:
    models = made_models(seed=8)
    (utterance,), params = sure_utterances(models, 7, count=1), models.shape.to_params()
    answers = run_together(
        lambda c: keyword_stream.client(asking(c), utterance.tolist(), shape=params),
        lambda c: keyword_stream.server(answering(c), plain_models(models), shape=params),
    )
    assert answers == (plain_word(models, utterance), None)


@pytest.mark.parametrize(
    ("changed", "said"), [({"labels": None}, "no word models"), ({"weights": [["a"]]}, "no word models")], ids=str
)
def test_models_that_are_none_are_refused(changed: dict[str, Any], said: str) -> None:
    models, nobody = made_models(), memory_pair()[0]
    params = models.shape.to_params()
    with pytest.raises(PpspeechError, match=said):
        server(answering(nobody), plain_models(models) | changed, shape=params)
    with pytest.raises(PpspeechError, match="initial"):
        server(answering(nobody), {"weights": [], "transitions": []}, shape=params)


def transcripts(models: WordArrays, utterance: Reals) -> tuple[Transcript, Transcript]:
    here, there = memory_pair()
    records = Transcript(here, keep_payloads=True), Transcript(there, keep_payloads=True)
    run_together(
        lambda c: client(asking(records[0]), utterance, shape=models.shape.to_params()),
        lambda c: server(answering(records[1]), plain_models(models), shape=models.shape.to_params()),
        (here, there),
    )
    return records


def test_lengths_depend_on_public_sizes_alone_and_are_those_of_the_record() -> None:
    """Another voice, another length, other models: the same messages."""
    shapes = []
    for seed, frames in ((0, 12), (1, 3), (2, 8)):
        models = made_models(seed, reject=True, ends=(2,))
        record, _ = transcripts(models, made_utterance(models, frames, seed))
        shapes.append(record.shape())
    assert shapes[0] == shapes[1] == shapes[2]
    job = KeywordJob(models.shape)
    total = sum(size for _, kind, size in shapes[0] if kind not in MEETING)
    flights = sum(kind == CryptoKind.FLIGHT for _, kind, _ in shapes[0])
    assert flights == job.shares_cost.messages
    assert total == job.total_bytes


def test_what_the_server_receives_is_uniform_whatever_the_voice() -> None:
    """Chi-square on the bytes that two voices give, at 1e-4: quiet and loud, the same word models."""
    models = made_models(frames=30)
    samples = []
    for scale in (0.01, 3.0):
        utterance = scale * made_utterance(models, 30, seed=1)
        said = b""
        for _ in range(2):
            _, record = transcripts(models, utterance)
            online = [entry for entry in record.entries if entry.direction == "received" and entry.kind in ONLINE]
            # Residues are uniform below the prime, one part in 2^36 short of all words: not seen here.
            said += b"".join((entry.payload or b"")[32:] for entry in online)
        samples.append(np.bincount(np.frombuffer(said, np.uint8), minlength=256))
    assert stats.chi2_contingency(np.array(samples)).pvalue > 1e-4


def test_what_cannot_be_scored_is_refused_before_anything_is_sent() -> None:
    models = made_models()
    shape = models.shape
    for bad in (np.zeros((2, 3)), np.zeros((13, 3)), np.zeros((5, 4)), np.full((5, 3), np.nan)):
        with pytest.raises(RangeError):
            shape.padded_monomials(bad)
    with pytest.raises(RangeError, match="3 to 12 frames"):
        shape.padded_monomials(np.zeros((2, 3)))


@pytest.mark.parametrize(
    "changed",
    [
        {"frames": 0},
        {"frames": 10**9},
        {"words": True},
        {"terms": "tied"},
        {"ends": []},
        {"ends": [3]},
        {"moves": [1, 0]},
        {"bits": 40},
        {"limit": 0.0},
        {"radius": 0.0},
        {"radius": "2"},
        {"radius": 1e9},
        {"more": 1},
        {"dimensions": "3"},
        {"reject": 1},
    ],
    ids=str,
)
def test_a_peer_cannot_propose_just_any_shape(changed: dict[str, Any]) -> None:
    params = made_models().shape.to_params()
    assert WordShape.from_params(params) == made_models().shape
    with pytest.raises(RangeError):
        WordShape.from_params(params | changed)


def test_models_must_fit_their_shape() -> None:
    models = made_models()
    with pytest.raises(PpspeechError, match="weights"):
        WordArrays(models.shape, models.weights[1:], models.transitions, models.initial, models.labels)
    with pytest.raises(PpspeechError, match="label"):
        WordArrays(models.shape, models.weights, models.transitions, models.initial, ("a", "b", "x" * 29))
    with pytest.raises(RangeError, match="no path"):
        _ = WordShape(9, 3, "full", 2, 3, (2,), moves=(0,)).shortest


def test_labels_come_back_whole() -> None:
    models = made_models(words=2)
    named = WordArrays(models.shape, models.weights, models.transitions, models.initial, ("größer", "x" * 28))
    assert [read_text(row) for row in named.label_numbers] == ["größer", "x" * 28]
    assert read_text(np.zeros(4, np.uint64)) is None

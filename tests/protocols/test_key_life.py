"""A key whose holder decrypts what others send: what a probe can tell of it, and when it is replaced."""

import struct

import numpy as np
import pytest

from ppspeech.channel import Channel
from ppspeech.crypto.lattice import Evaluator, KeyHolder, LatticeParameters, dump_reply
from ppspeech.crypto.lattice.ntt import transform_of
from ppspeech.crypto.lattice.public_key import second_half
from ppspeech.crypto.lattice.wire import key_identity
from ppspeech.crypto.shares import ShareEngine
from ppspeech.crypto.transfer.setup import Side
from ppspeech.errors import RangeError
from ppspeech.network import Transcript, memory_pair, run_together
from ppspeech.protocols import meet_as_client, meet_as_server
from ppspeech.protocols.message_kinds import Kind
from ppspeech.protocols.scores.streamed import Streamed
from ppspeech.protocols.speakers.gallery import PROBES_A_KEY, GalleryPlan, Keeper, KeySpentError
from ppspeech.protocols.speakers.verify import decide
from ppspeech.protocols.words import Hearing, Questions, StreamModels, TakenModels, Watch, follow, streams_a_key, watch
from tests.crypto.pairs import lasting_setup
from tests.protocols.word_reference import made_models, made_utterance, plain_scores

PLAN = GalleryPlan(24, 6)
RING = LatticeParameters()


def test_the_coins_of_a_key_are_what_both_parties_have_said() -> None:
    meetings = [run_together(meet_as_client, meet_as_server) for _ in range(2)]
    seen = set()
    for client, server in meetings:
        assert isinstance(client.lattice, KeyHolder)
        identity = key_identity(client.lattice.public_key, client.setup.id)
        assert identity == client.lattice.identity == server.lattice.identity
        seen.add(second_half(server.setup.id, RING).tobytes())
    assert len(seen) == 2


def ask_about_the_key(keeper: Keeper, shift: int, above: bool) -> bool | None:
    """A "probe" whose second part is (q / 4) X^shift: the keeper's share is a quarter of the range times a coefficient
    of its key, and the prober's own share puts the threshold between two of its three values.
    """
    setups, (here, there) = lasting_setup(), memory_pair()
    job, ring = PLAN.product.job, PLAN.verification.plan.ring
    words = np.zeros(len(job.kept) + RING.degree, "<u4")
    words[len(job.kept) + shift] = 1 << 30
    forged = struct.pack("<4s8s8s", b"LATR", job.identity, keeper._key.identity) + words.tobytes()
    share = np.full((1, PLAN.places), (1 if above else -1) * 2 ** (ring.bits - 3), np.int64)

    def probe(channel: Channel) -> bool | None:
        with setups[Side.SECOND].session(channel):
            engine = ShareEngine(channel, setups[Side.SECOND], PLAN.cost)
            channel.send(Kind.REPLY, forged)
            return decide(engine, PLAN.verification, ring.from_signed(share), 0)

    return run_together(lambda c: keeper.answer(c, setups[Side.FIRST]), probe, (here, there))[1]


def coefficients(keeper: Keeper, count: int) -> list[int]:
    """The attack: two bits a coefficient of the key."""
    place = PLAN.product.job.kept[0]  # where the claimed template's score stands
    found = []
    for shift in range(place + 1 - count, place + 1):
        assert 0 <= shift <= place
        found.append(ask_about_the_key(keeper, shift, above=False) - (not ask_about_the_key(keeper, shift, above=True)))  # type: ignore[operator]
    return found


def test_a_cap_bounds_what_probes_tell_of_the_keepers_key() -> None:
    keeper = Keeper(PLAN, np.eye(24)[:1], 0.0)
    place = PLAN.product.job.kept[0]
    transformed = keeper._key._secret[None].copy()
    secret = transform_of(RING).inverse_(transformed)[0].astype(np.int64)
    secret[secret > 1] -= RING.prime
    count = min(12, place + 1)
    assert coefficients(keeper, count) == [int(secret[place - s]) for s in range(place + 1 - count, place + 1)]
    # Two probes a coefficient at the most: without a cap 2,048 of them follow. It ends after so many bits, of 3,246:
    assert keeper._left.value == PROBES_A_KEY - 2 * count
    assert 0 < PROBES_A_KEY <= RING.leakable_bits < 0.08 * RING.degree * np.log2(3)
    keeper._left.value = 1
    assert not keeper.is_spent
    ask_about_the_key(keeper, 0, above=True)
    assert keeper.is_spent
    with pytest.raises(KeySpentError, match="a new one"):
        keeper.answer(memory_pair()[0], lasting_setup()[Side.FIRST])
    assert lasting_setup()[Side.FIRST].usable  # refused before anything was said


def test_what_a_server_is_told_may_be_of_the_clients_key_and_is_bounded() -> None:
    """A "reply" that is none makes the client's shares coefficients of its key, and the word tells how two of them
    compare: so the key, and all vectors under it, would follow from questions without end.
    """
    two = {"words": 2, "states": 1, "frames": 1, "moves": (0,), "operation": "viterbi"}
    models = made_models(terms="linear", dimensions=4, radius=3.0, **two)
    shape, ring = models.shape, models.shape.scale.ring
    job, asked = Questions(shape, "server", 40), models.labels
    turns = range(0, 2 * 40, 2)

    def honest(channel: Channel) -> np.ndarray:
        met = meet_as_client(channel)
        with met.session():
            questions = Watch(met, job)
            for _ in turns:
                questions.ask(np.ones(4))
        assert isinstance(met.lattice, KeyHolder)
        secret = transform_of(RING).inverse_(met.lattice._secret[None].copy())[0].astype(np.int64)
        return np.where(secret > 1, secret - RING.prime, secret)

    def curious(channel: Channel) -> list[str | None]:
        met, heard = meet_as_server(channel), list[str | None]()
        assert isinstance(met.lattice, Evaluator)
        product = job.plan.job
        first = np.zeros((product.outputs, len(product.kept)), np.uint64)
        own = ring.from_signed(np.array([[0, 2 ** (ring.bits - 3)]]))  # an eighth of the range
        with met.session():
            engine = job.prepare(met)
            for turn in turns:
                met.channel.receive(Kind.STEP, 1)
                met.channel.receive(Kind.QUERY, product.query_bytes)
                second = np.zeros((product.outputs, RING.degree), np.uint64)
                second[:, turn] = 1 << 30
                met.channel.send(Kind.REPLY, dump_reply(product.identity, met.lattice.identity, first, second))
                words = watch._decide(engine, job.question, "server", models, own)
                assert words is not None
                heard += words
        return heard

    secret, heard = run_together(honest, curious)
    one, other = job.plan.job.kept[:2]

    def coefficient(place: int, turn: int) -> int:
        return int(secret[place - turn] if place >= turn else -secret[place - turn])

    gaps = [2 * (coefficient(one, turn) - coefficient(other, turn)) - 1 for turn in turns]  # in eighths
    assert heard == [asked[0 if (gap + 4) % 8 >= 4 else 1] for gap in gaps]
    assert len(set(heard)) == 2
    most = watch.questions_a_key(shape)
    assert most * shape.answer_bits <= RING.leakable_bits
    Questions(shape, "client", most + 1)
    Questions(shape, "server", most)
    with pytest.raises(RangeError, match=f"1 to {most} questions"):
        Questions(shape, "server", most + 1)


def test_a_server_streams_under_a_key_of_the_meeting_and_replaces_it(monkeypatch: pytest.MonkeyPatch) -> None:
    models = made_models(seed=8)
    assert streams_a_key(models.shape) == RING.leakable_bits // 2  # three words or none: two bits an answer
    monkeypatch.setattr(Streamed, "answers_a_key", 2)
    utterance = made_utterance(models, 6, 0)
    wanted = models.labels[int(np.argmax(plain_scores(models, utterance)))]
    keys: list[bytes] = []

    def listen(channel: Channel) -> tuple[list[str | None], list[int]]:
        met, taken, record = meet_as_client(channel), TakenModels(models.shape), Transcript(channel)
        words = []
        with met.session():
            for _ in range(3):
                hearing = Hearing(met, taken)
                for frame in utterance:
                    hearing.hear(frame)
                words.append(hearing.finish())
        return words, [entry.size for entry in record.entries]

    def help_client(channel: Channel) -> None:
        met, hidden = meet_as_server(channel), StreamModels(models)
        with met.session():
            for _ in range(3):
                follow(met, hidden)
                keys.append(hidden.key.public_key)

    for _ in range(2):
        (words, _), _ = run_together(listen, help_client)
        assert words == [wanted] * 3
    assert keys[0] == keys[1] != keys[2]
    assert len(set(keys)) == 4  # the next meeting has others

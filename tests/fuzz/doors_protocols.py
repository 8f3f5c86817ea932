"""Doors of the protocols: keys and ciphertexts, transfers, share flights, sums, filters, galleries."""

from typing import Any

import numpy as np
import torch

from ppspeech.channel import Channel
from ppspeech.crypto import MapKey, ask_points
from ppspeech.crypto.garbled import Garbler, read_automaton
from ppspeech.crypto.lattice import (
    Evaluator,
    FrameSender,
    KeyHolder,
    client_finish,
    client_query,
    encode_weights,
    plan_product,
    plan_stream,
    publish_model,
    receive_scores,
    server_reply,
)
from ppspeech.crypto.lattice.public_key import load_public_key
from ppspeech.crypto.lattice.wire import load_query, load_reply
from ppspeech.crypto.numbers import Ring
from ppspeech.crypto.paillier import PaillierPublicKey
from ppspeech.crypto.randomness import uniform_residues
from ppspeech.crypto.shares import Shared, ShareEngine, argmax, maximum
from ppspeech.crypto.shares.recorder import Recorder
from ppspeech.crypto.transfer import PairSetup, Side, choose_keys, offer_keys
from ppspeech.filters import LinearFilter
from ppspeech.network import Transcript, run_together
from ppspeech.protocols.filters import digest_of
from ppspeech.protocols.filters.personal_filters import Aggregator, Contributor, PersonalTerms
from ppspeech.protocols.music import LandmarkShape, look_up_landmarks, seal_landmarks, take_map
from ppspeech.protocols.speakers.gallery import EncryptedGallery, GalleryPlan, Keeper, Prober
from ppspeech.protocols.sums.aggregation import CuratorSession, PartySession
from ppspeech.protocols.sums.masks import SessionKey
from ppspeech.service.tasks.text import Texts, receive_wanted
from tests.crypto.dealer import Dealer, Half
from tests.crypto.garbled_pairs import Sum
from tests.crypto.pairs import agree
from tests.crypto.test_transfer_check import extension
from tests.fuzz.door import Door, Says, apart, door, several


def _product() -> tuple[Any, ...]:
    key, plan = KeyHolder(), plan_product(3, 4, 2)
    evaluator, weights = Evaluator(key.public_key, key.coins), encode_weights(plan, np.ones((4, 2)))
    query = client_query(key, plan, np.ones((3, 4)))
    return key, plan, evaluator, weights, query, server_reply(evaluator, plan, weights, query)[0]


@door(cost=8)
def lattice_query() -> Door:
    key, plan, *_, query, _ = _product()
    names = plan.job.identity, key.identity
    return Door(lambda data: load_query(data, key.parameters, *names, plan.job.terms), (query,))


@door(cost=4)
def lattice_reply() -> Door:
    key, plan, *_, reply = _product()
    job = plan.job
    names = job.identity, key.identity
    return Door(lambda data: load_reply(data, key.parameters, *names, job.outputs, len(job.kept)), (reply,))


@door(cost=40)
def lattice_key() -> Door:
    """What reaches SEAL: residues that were checked."""
    key = KeyHolder()
    return Door(lambda data: load_public_key(data, key.coins, key.parameters), (key.public_key,))


@door(cost=150)
def product() -> Door:
    """The evaluator's whole step."""
    _, plan, evaluator, weights, query, _ = _product()
    return Door(lambda data: server_reply(evaluator, plan, weights, data), (query,))


@door(cost=60)
def product_finish() -> Door:
    """The key holder's whole step; its key opens one reply for every query."""
    key, plan, *_, reply = _product()
    return Door(lambda data: client_finish(key, plan, data), (reply,))


@door(cost=150)
def streamed_model() -> Door:
    """A model under its owner's key, as a client takes it, and the first frame into it."""
    key, plan = KeyHolder(), plan_stream(3, 4)
    evaluator = Evaluator(key.public_key, key.coins)
    model = publish_model(key, plan, np.ones((3, 4)))
    return Door(lambda data: FrameSender(evaluator, plan, data).send(np.ones((1, 3))), (model,))


@door(cost=40)
def streamed_scores() -> Door:
    key, plan = KeyHolder(), plan_stream(3, 4)
    sender = FrameSender(Evaluator(key.public_key, key.coins), plan, publish_model(key, plan, np.ones((3, 4))))
    reply = sender.send(np.ones((1, 3)))[0]
    return Door(lambda data: receive_scores(key, plan, data), (reply,))


@door(cost=100)
def gallery() -> Door:
    """Ciphertexts of a store, as a prober takes them."""
    plan = GalleryPlan(3, 2)
    published = Keeper(plan, np.eye(3)[:2], 0.5).publish()

    def enter(data: bytes) -> None:
        Prober(EncryptedGallery.receive(Says(*apart(data)), plan))

    return Door(enter, (several(published.public_key, published.templates),))


@door(cost=30)
def map_points() -> Door:
    """Points that a map's owner is asked to help with."""
    key = MapKey.new()
    asked = key.point_of(b"one") + key.point_of(b"two")
    return Door(lambda data: key.help(Says(data), 2), (asked,))


@door(cost=30)
def map_help() -> Door:
    """What an owner says to blinded points."""
    key = MapKey.new()
    return Door(lambda data: ask_points(Says(data), [b"one"], 2), (key.point_of(b"one") + key.point_of(b"two"),))


@door(cost=8)
def landmark_map() -> Door:
    """A sealed map, and what is looked up in it."""
    key, shape, marks = MapKey.new(), LandmarkShape(1, 1, 4, 1, 9), (np.arange(4), np.arange(4))
    sealed = seal_landmarks(key, shape, [marks], ["song"]).dump()
    return Door(lambda data: look_up_landmarks(key, shape, take_map(Says(data), shape), *marks), (sealed,))


@door(cost=30)
def base_point() -> Door:
    points: list[bytes] = []

    def sender(channel: Channel) -> None:
        record = Transcript(channel, keep_payloads=True)
        offer_keys(record, 2)
        points.append(record.entries[0].payload or b"")

    run_together(sender, lambda channel: choose_keys(channel, np.array([True, False])))
    return Door(lambda data: choose_keys(Says(data), np.array([True, False])), (points[0],))


@door(cost=30)
def base_reply() -> Door:
    replies: list[bytes] = []

    def receiver(channel: Channel) -> None:
        record = Transcript(channel, keep_payloads=True)
        choose_keys(record, np.array([True, False]))
        replies.append(record.entries[-1].payload or b"")

    run_together(lambda channel: offer_keys(channel, 2), receiver)
    return Door(lambda data: offer_keys(Says(data), 2), (replies[0],))


@door(cost=30)
def columns() -> Door:
    """An extension's columns and what they are checked by; the sender begins anew each time."""
    said: list[bytes] = []
    _, receiver = extension("1-of-2")
    quiet: Any = Says()
    quiet.send = lambda kind, payload: said.append(bytes(payload))
    receiver.rows(quiet, np.zeros(8, np.uint8))
    return Door(lambda data: extension("1-of-2")[0].rows(Says(data), 8), (said[0],))


@door(cost=30)
def code_columns() -> Door:
    said: list[bytes] = []
    _, receiver = extension("1-of-n")
    quiet: Any = Says()
    quiet.send = lambda kind, payload: said.append(bytes(payload))
    receiver.rows(quiet, np.zeros(8, np.uint8))
    return Door(lambda data: extension("1-of-n")[0].rows(Says(data), 8), (said[0],))


@door(cost=2000)
def meeting() -> Door:
    """A server that meets a client: points, columns, a key."""
    from ppspeech.protocols import meet_as_client, meet_as_server

    said: list[bytes] = []

    def server(channel: Channel) -> None:
        record = Transcript(channel, keep_payloads=True)
        meet_as_server(record)
        said.extend(entry.payload or b"" for entry in record.entries if entry.direction == "received")

    run_together(server, meet_as_client)
    return Door(lambda data: meet_as_server(Says(*apart(data))), (several(*said),))


@door(cost=2000)
def setup_second() -> Door:
    """The other side of the transfers' setup."""
    said: list[bytes] = []

    def second(channel: Channel) -> None:
        record = Transcript(channel, keep_payloads=True)
        PairSetup.agree(record, Side.SECOND)
        said.extend(entry.payload or b"" for entry in record.entries if entry.direction == "received")

    run_together(lambda channel: PairSetup.agree(channel, Side.FIRST), second)
    return Door(lambda data: PairSetup.agree(Says(*apart(data)), Side.SECOND), (several(*said),))


def _garbled() -> tuple[tuple[PairSetup, PairSetup], Sum, dict[Side, list[bytes]]]:
    """Two parties in session, a circuit, and what each of them received of it."""
    setup, job = agree(), Sum(*(np.arange(3, dtype=np.uint64) for _ in range(3)), bits=4)
    for half in setup:
        half._state = "in use"
    heard: dict[Side, list[bytes]] = {}

    def party(channel: Channel, side: Side) -> None:
        record = Transcript(channel, keep_payloads=True)
        (job.garble if side is Side.FIRST else job.evaluate)(record, setup[side])
        heard[side] = [entry.payload or b"" for entry in record.entries if entry.direction == "received"]

    run_together(lambda channel: party(channel, Side.FIRST), lambda channel: party(channel, Side.SECOND))
    return setup, job, heard


@door(cost=20)
def garbled_choices() -> Door:
    """A garbler that is told choices: columns have a door of their own."""
    (first, _), job, heard = _garbled()

    def enter(data: bytes) -> None:
        garbler = Garbler(Says(data), first)
        garbler._labels.rows = lambda *_: uniform_residues((job.inputs, 2))
        offered = garbler.late_inputs(job.inputs)
        garbler.begin(0)
        garbler.answer(offered)

    return Door(enter, (heard[Side.FIRST][-1],))


@door(cost=60)
def garbled_tables() -> Door:
    """An evaluator that is given a key, tables, labels and meanings."""
    (_, second), job, heard = _garbled()
    return Door(lambda data: job.evaluate(Says(*apart(data)), second), (several(*heard[Side.SECOND]),))


def _flights(side: Side) -> Door:
    """One party's part of comparisons, products and looks into tables; the other says what it likes."""
    dealer = Dealer(side, 16, lambda _, __, count, bits: uniform_residues(count, bits))
    own = [uniform_residues((4, 3), 16) for _ in Side]
    records: dict[Side, Transcript] = {}

    def run(channel: Channel, which: Side) -> None:
        engine = ShareEngine.__new__(ShareEngine)
        engine.party, engine.correlations, engine.channel = which, Half(dealer, which), channel
        with engine.in_flights():
            shared = Shared(engine, own[which], Ring(16))
            maximum(shared, -shared)
            argmax(shared)

    def party(channel: Channel, which: Side) -> None:
        records[which] = Transcript(channel, keep_payloads=True)
        run(records[which], which)

    run_together(lambda channel: party(channel, Side.FIRST), lambda channel: party(channel, Side.SECOND))
    heard = [entry.payload or b"" for entry in records[side].entries if entry.direction == "received"]
    return Door(lambda data: run(Says(*apart(data)), side), (several(*heard),))


@door(cost=100)
def flights_first() -> Door:
    return _flights(Side.FIRST)


@door(cost=100)
def flights_second() -> Door:
    return _flights(Side.SECOND)


@door(cost=20)
def sums_party() -> Door:
    """A curator's roster, signatures and sum. Its roster has our key, which is new each time: `Curator` puts it in."""

    class Curator(Says):
        def send(self, kind: int, payload: bytes | bytearray | memoryview) -> None:
            if len(payload) == 32 and self.messages:
                self.messages[0] = self.messages[0].replace(b"K" * 32, bytes(payload))

    def enter(data: bytes) -> object:
        return PartySession(Curator(*apart(data)), 2).sum(np.arange(3))

    other = SessionKey(None).public
    roster = b"\0" + b"K" * 32 + other
    return Door(enter, (several(roster, b"\0" + bytes(4), b"\0" + bytes(24)), several(roster, b"\1somebody is gone")))


@door(cost=60)
def sums_curator() -> Door:
    """Two parties' keys, signatures and vectors."""

    def enter(data: bytes) -> object:
        messages = apart(data)
        return CuratorSession({"a": Says(*messages[::2]), "b": Says(*messages[1::2])}).sum(3)

    return Door(enter, (several(bytes(32), bytes(32), b"", b"", bytes(24), bytes(24)),))


COMMON = LinearFilter.of(torch.eye(2, 3, dtype=torch.float64))


@door(cost=60)
def filter_contributor() -> Door:
    """An aggregator's filter and everyone's samples."""
    terms = PersonalTerms(3, 2, 2, rounds=1, most_samples=4, common=digest_of(COMMON))
    common = b"".join(each.detach().numpy().astype("<f4").tobytes() for each in (COMMON.weight, COMMON.bias))
    others = np.ones((4, 2), "<f4").tobytes() + np.array([0, 1, 0, 1], "<u2").tobytes()

    def enter(data: bytes) -> object:
        inputs = torch.tensor([[0.0, 1, 2], [1, 1, 1], [2, 0, 1], [0, 0, 1]])
        return Contributor(inputs, torch.tensor([0, 1, 0, 1]), terms).take_part(Says(*apart(data)))

    return Door(enter, (several(bytes(32) + common, b"\0" + others, b"\1done"),))


@door(cost=40)
def filter_aggregator() -> Door:
    """A contributor's ticket, labels and samples."""
    terms = PersonalTerms(3, 2, 2, rounds=1, most_samples=4, common=digest_of(COMMON))
    shown = np.ones((2, 2), "<f4").tobytes()

    def enter(data: bytes) -> str:
        return Aggregator(COMMON, ["a", "b"], terms, gather_seconds=0).attend(Says(*apart(data)), "a")

    return Door(enter, (several(bytes(32), np.array([0, 1], "<u2").tobytes(), shown, shown),))


@door(cost=200)
def paillier_key() -> Door:
    from ppspeech.crypto.paillier.primes import prime_pair

    p, q = prime_pair(256, lambda p, q: True)
    seed = PaillierPublicKey(p * q, insecure_demo=True).to_bytes()
    return Door(lambda data: PaillierPublicKey.from_bytes(data, insecure_demo=True), (seed,))


@door()
def wanted() -> Door:
    """What a client wants of a text."""
    terms = Texts("letters", 64, 16, "lines")
    seeds = (b"\x00\x00\x00\x07", b"\x01\x02\x00\x40", b"\x02\x01\x04\x00")
    return Door(lambda data: receive_wanted(Says(data), terms), seeds)


@door(cost=20)
def garbled_automaton() -> Door:
    """A key, labels and cells, as the reader of a text takes them."""
    text = np.array([[1, 3], [0, 2]])

    def enter(data: bytes) -> None:
        engine = Recorder(Side.SECOND)
        engine.channel = Says(*apart(data))
        read_automaton(engine, text, 4, 2)

    cells = 2 * 4 * 4 * 16
    return Door(enter, (several(bytes(16), bytes(32), bytes(cells), bytes(range(256)) * (cells // 256)),))

"""The reference pages of formats are true: their tables follow from the code, their vectors are what the code computes,
and a client in plain Python that does what they say, and shares no code with the package, is told the right word.
"""

import hashlib
import json
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ppspeech.audio import MfccConfig
from ppspeech.bundle import load_bundle, privacy_schema, to_plain
from ppspeech.bundle.releases.ledger import NOTHING, add_release, parse_ledger
from ppspeech.channel import Channel
from ppspeech.network import run_together
from ppspeech.protocols import meet_as_server
from ppspeech.protocols.scores import WordArrays
from ppspeech.protocols.trellis.schedule import plan_trellis
from ppspeech.protocols.words import KeywordJob, answer, encode_models
from ppspeech.protocols.words.recursion import word_trellis
from tests import vectors
from tests.pages import PAGES, TOP, parts, renewed
from tests.protocols.test_keyword import SHAPES, sure_utterances
from tests.protocols.word_reference import made_models, plain_word
from tests.service.conftest import serving
from tests.service.voices import FAR, RATE, WHOLE, released, voice
from tests.vectors import drawn, read
from tests.wire import frames, front_end, lattice, shares, transfers, words

REFERENCE = TOP / "docs" / "reference"


# What stands in pages


@pytest.mark.parametrize("page", PAGES)
def test_pages_have_what_the_code_has(page: str) -> None:
    text = (TOP / page).read_text(encoding="utf-8")
    assert set(parts(text)) == set(PAGES[page])
    assert text == renewed(page, text), "run `python -m tests.pages`"


def test_a_page_that_says_something_else_is_seen() -> None:
    page = "docs/reference/wire.md"
    text = (TOP / page).read_text(encoding="utf-8")
    assert "| prime q | 1125899906826241 |" in text
    wrong = text.replace("| prime q | 1125899906826241 |", "| prime q | 1125899906826243 |")
    assert renewed(page, wrong) == text


def test_vectors_named_in_the_page_are_there() -> None:
    text = (REFERENCE / "wire.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+)\.json:\s+([\w.]+)`", text)
    assert len(named) >= 20
    for file, path in named:
        found: Any = read(file)
        for key in path.split("."):
            found = found[key]


def test_the_example_of_a_bundle_is_one() -> None:
    """The statement in the page fits the schema; the line of its ledger is sealed and gives its epsilon."""
    jsonschema = pytest.importorskip("jsonschema")
    text = (REFERENCE / "bundle.md").read_text(encoding="utf-8")
    (statement,) = re.findall(r"```json\n(\{\n  \"format\": 3.*?\n\})\n```", text, re.DOTALL)
    jsonschema.validate(json.loads(statement), privacy_schema())
    (line,) = re.findall(r"```text\n(\{\"format\": 1, \"number\": 1.*?\})\n```", text, re.DOTALL)
    (booked,) = parse_ledger(line.encode() + b"\n").booked
    booked.check()
    assert booked.entry.epsilon == pytest.approx(json.loads(statement)["guarantee"]["epsilon"])


def test_a_ledger_is_what_the_page_says(tmp_path: Path) -> None:
    """Lines by the rules of the page alone: the hash is of all before it, `previous` of the line before."""
    for seed, name in enumerate(("one", "two")):
        released(tmp_path / name, seed=seed)
        add_release(tmp_path / "ledger", load_bundle(tmp_path / name), data="ward", by="ann")
    before = NOTHING
    for line in (tmp_path / "ledger").read_bytes().splitlines():
        body, seal = line[: line.rindex(b', "hash"')], json.loads(line)
        assert seal["previous"] == before
        assert seal["hash"] == hashlib.sha256(body).hexdigest()
        before = seal["hash"]


def test_a_bundle_is_what_the_page_says(tmp_path: Path) -> None:
    """Digests, fingerprint and weights by the rules of the page alone."""
    bundle = released(tmp_path / "bundle")
    folder = tmp_path / "bundle"
    told = json.loads((folder / "digests.json").read_bytes())
    assert list(told) == sorted(told)
    assert told == {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in told}
    assert bundle.fingerprint == hashlib.sha256((folder / "digests.json").read_bytes()).hexdigest()
    data = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert {name: tuple(each["shape"]) for name, each in header.items()} == dict(bundle.config.tensors())
    assert {each["dtype"] for each in header.values()} == {"F32"}


# Vectors


@pytest.mark.parametrize("name", vectors.ALL)
def test_vectors_are_what_the_code_computes(name: str) -> None:
    stored, now = read(name), json.loads(vectors.written(name))
    if name == "front_end":  # in floating point
        for one, other in zip(stored.pop("of"), now.pop("of"), strict=True):
            for row in ("row_0", "row_3"):
                np.testing.assert_allclose(one.pop(row), other.pop(row), atol=stored["tolerance"])
            assert one == other
    assert stored == now, "the wire has changed: if it should, raise its version, and run `python -m tests.vectors`"


def test_vectors_are_small() -> None:
    files = list(vectors.FOLDER.glob("*.json"))
    assert {path.stem for path in files} == set(vectors.ALL)
    assert sum(path.stat().st_size for path in files) < 200_000


def test_the_plain_client_packs_alike() -> None:
    for each in read("encodings")["numbers"]:
        data = frames.pack(each["numbers"], each["width"])
        assert data.hex() == each["bytes"]
        assert frames.unpack(data, len(each["numbers"]), each["width"]) == each["numbers"]
    told = read("encodings")
    assert frames.canonical(told["shape"]).decode() == told["shape_canonical"]
    assert hashlib.sha256(frames.canonical(told["shape"])).hexdigest() == told["agreement"]["shape"]
    assert words.shortest(told["shape"]) == told["shortest"]
    for terms, monomials in told["monomials_of_3_and_minus_2"].items():
        shape = {"frames": 1, "terms": terms, "limit": 8.0, "radius": None}
        assert words.padded(shape, [[3.0, -2.0]]) == [monomials]


def test_the_plain_client_transfers_alike() -> None:
    told = read("transfers")
    base = told["base"]
    secret, point, reply = (bytes.fromhex(base[name]) for name in ("secret_scalar", "point", "reply"))
    for number, pair in enumerate(base["keys"]):
        answers = reply[64 * number : 64 * number + 64]
        assert [transfers.base_key(number, side, secret, point, answers).hex() for side in (0, 1)] == pair
    assert transfers.hash_to_group(b"abc").hex() == base["hash_to_group_of_abc"]
    hashed = told["block_hash"]
    hasher = transfers.BlockHash(bytes.fromhex(hashed["key"]))
    assert hasher.narrow(bytes.fromhex(hashed["row"]), 5).hex() == hashed["hash"]
    assert hasher.wide(bytes.fromhex(hashed["wide_row"]), 5)[:8].hex() == hashed["wide_hash_first_8"]
    columns = [drawn("columns", 2048)[at : at + 16] for at in range(0, 2048, 16)]
    rows = transfers.transposed(columns)
    assert hashlib.sha256(b"".join(rows)).hexdigest() == told["transposition"]["rows_sha256"]
    found = transfers.hashes(bytes.fromhex(told["check"]["challenge"]), columns[:2])
    assert [each.hex() for each in found] == told["check"]["hashes"]
    assert transfers.digest(found).hex() == told["check"]["digest"]


@pytest.mark.parametrize(("name", "columns", "kind"), [("pairs", 128, 204), ("code", 256, 205)])
def test_the_plain_client_extends_alike(name: str, columns: int, kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    told, script = read("transfers")[name], vectors.Script()
    keys = drawn(f"keys of {name}", 32 * columns)
    pairs = [(keys[at : at + 16], keys[at + 16 : at + 32]) for at in range(0, len(keys), 32)]
    receiver = transfers.Receiver(pairs, bytes.fromhex(told["hash_key"]), bytes.fromhex(told["label"]))
    monkeypatch.setattr(transfers.os, "urandom", lambda count: drawn("blind", count))
    rows = receiver.rows(script, told["choices"], kind)
    assert hashlib.sha256(script.sent[0]).hexdigest() == told["message_sha256"]
    assert len(script.sent[0]) == told["message_bytes"]
    if columns == 128:
        found = [shares.word(receiver.hash.narrow(row, number)) for number, row in enumerate(rows)]
        assert [str(each) for each in found] == told["residues"]
        secret = drawn("secret", 16)
        bits = [secret[place // 8] >> place % 8 & 1 for place in range(128)]
        own = [pair[bit] for pair, bit in zip(pairs, bits, strict=True)]
        sender = transfers.Sender(bits, own, bytes.fromhex(told["hash_key"]), bytes.fromhex(told["label"]))
        rows = sender.rows(vectors.Script(script.sent[0]), len(told["choices"]), kind)
        both = [
            (sender.hash.narrow(row, number), sender.hash.narrow(transfers.xor(row, sender.delta), number))
            for number, row in enumerate(rows)
        ]
        sent = read("transfers")["sender"]
        assert [[str(shares.word(one)) for one in pair] for pair in both] == [
            list(pair) for pair in zip(sent["zero"], sent["one"], strict=True)
        ]
        return
    widths = [batch["width"] for batch in told["batches"] for _ in range(batch["count"])]
    hashed = [shares.word(receiver.hash.wide(row, number)) for number, row in enumerate(rows)]
    pads = [each & ((1 << width) - 1) for each, width in zip(hashed, widths, strict=True)]
    assert pads == told["pads"]


def test_the_plain_client_computes_on_shares_alike() -> None:
    told = read("shares")["product"]
    script = vectors.Script(bytes.fromhex(told["received"]))
    engine = shares.Engine(script)
    kept = zip(told["choices"], *(map(int, told[name]) for name in ("got", "zero", "one_less_zero")), strict=True)
    engine._products.extend(kept)
    assert engine.times(told["bits"], told["residues"], told["k"]) == told["share"]
    assert script.sent[0].hex() == told["sent"]
    told = read("shares")["ask"]
    script = vectors.Script(drawn("tables", 48))
    engine = shares.Engine(script)
    engine._asked[6, 2].extend(zip(told["choices"], told["pads"], strict=True))
    assert engine.ask(((6, 2), told["indices"])) == [told["opened"]]
    assert script.sent[0].hex() == told["sent"]


@pytest.mark.parametrize("told", read("shares")["costs"], ids=lambda told: str(told["changes"]))
def test_the_plain_client_counts_alike(told: dict[str, Any]) -> None:
    """A dry run takes the tables and products that both parties prepare."""
    changes = dict(told["changes"])
    utterances, ahead = changes.pop("utterances"), changes.pop("ahead")
    shape = vectors.SHAPE.to_params() | changes
    columns = shape["words"] * shape["states"] * shape["components"] + shape["reject"]
    engine = shares.Engine()
    rows = [[0] * columns for _ in range(utterances * shape["frames"])]
    words.name_words(engine, shape, rows, [0] * utterances, ahead)
    assert {f"{bits},{width}": count for (bits, width), count in sorted(engine.tables.items())} == told["tables"]
    assert engine.products == told["products"]


def test_the_plain_client_has_the_same_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    told = read("lattice")
    expanded = lattice.expand(drawn("seed", 64))
    assert expanded[:4] == told["expansion"]["first_4"]
    assert _digest(expanded) == told["expansion"]["sha256"]
    assert lattice.roots()[lattice.N // 2] == told["root"]
    transformed = lattice.forward(list(range(1, lattice.N + 1)))
    assert _digest(transformed) == told["transform_of_1_2_3"]["sha256"]
    assert lattice.inverse(transformed) == list(range(1, lattice.N + 1))
    assert [lattice.to_32(each) for each in told["to_32_bits"]["residues"]] == told["to_32_bits"]["words"]
    assert [lattice.from_32(each) for each in told["from_32_bits"]["words"]] == told["from_32_bits"]["residues"]
    for cut in told["cuts"]:
        found = lattice.Cut(*(cut[name] for name in ("rows", "inner", "columns", "limit", "bits", "fraction")))
        assert list(found.block) == cut["block"]
        assert found.identity.hex() == cut["identity"]
        assert (found.query_bytes, found.reply_bytes) == (cut["query_bytes"], cut["reply_bytes"])
    errors = iter(range(10**9))
    monkeypatch.setattr(lattice, "error", lambda: next(errors) % lattice.N % 7 - 3)
    key = lattice.Key.__new__(lattice.Key)
    coins = bytes.fromhex(told["key"]["coins"])
    ternary = iter([(7 * place * place + place) % 3 for place in range(lattice.N)])
    monkeypatch.setattr(lattice.secrets, "randbelow", lambda _: next(ternary))
    key.__init__(coins)  # type: ignore[misc]
    assert hashlib.sha256(key.public).hexdigest() == told["key"]["public_sha256"]
    assert key.identity.hex() == told["key"]["identity"]


def _digest(residues: list[int]) -> str:
    return hashlib.sha256(b"".join(each.to_bytes(8, "little") for each in residues)).hexdigest()


def test_the_plain_client_hears_alike() -> None:
    told = read("front_end")
    for each in told["of"]:
        rows = front_end.features(vectors.sound(), to_plain(MfccConfig(**each["changes"])))
        assert len(rows) == each["frames"]
        np.testing.assert_allclose(rows[0], each["row_0"], atol=told["tolerance"])
        np.testing.assert_allclose(rows[3], each["row_3"], atol=told["tolerance"])


# Whole sessions


class Through:
    """The plain client's wire over a channel of ours; frames of its own are in the test over TLS."""

    def __init__(self, channel: Channel) -> None:
        self._channel, self._flying, self._flight = channel, False, b""

    fly = frames.Wire.fly
    send = frames.Wire.send
    receive = frames.Wire.receive

    def _write(self, kind: int, payload: bytes) -> None:
        self._channel.send(kind, payload)

    def _read(self, kind: int, size: int | None) -> bytes:
        return self._channel.receive(kind, size) if size is not None else self._channel.receive(kind, at_most=1 << 22)


def told_words(models: WordArrays, utterances: list[Any], ahead: int) -> list[str | None]:
    """What the plain client is told by our server."""
    job = KeywordJob(models.shape, len(utterances), ahead)

    def ask(channel: Channel) -> Any:
        wire = Through(channel)
        setup, key = words.meet(wire)
        return words.recognize(wire, setup, key, models.shape.to_params(), utterances, ahead)

    def help_client(channel: Channel) -> None:
        met = meet_as_server(channel)
        with met.session():
            answer(met, job, models, encode_models(models, len(utterances)))

    return run_together(ask, help_client)[0]


CASES: list[tuple[dict[str, Any], int, int]] = [
    *((sizes, 1, 1) for sizes in SHAPES),
    ({}, 1, 2),
    ({"words": 2}, 2, 8),
    ({"operation": "viterbi", "moves": (0, 1, 2), "ends": (1, 2)}, 1, 2),
    ({"frames": 8, "states": 4, "moves": (0, 1, 2, 3), "reject": True}, 1, 1),
    ({"terms": "diagonal", "dimensions": 2, "states": 2, "frames": 6, "floor": 300, "reach": 18}, 2, 1),
]


@pytest.mark.parametrize(("sizes", "utterances", "ahead"), CASES, ids=str)
def test_the_plain_client_is_told_the_word(sizes: dict[str, Any], utterances: int, ahead: int) -> None:
    models = made_models(3, **sizes)
    said = sure_utterances(models, min(10, models.shape.frames - 1), utterances)
    assert told_words(models, said, ahead) == [plain_word(models, each) for each in said]


@pytest.mark.parametrize("moves", [(0, 1), (0, 1, 2), (0, 1, 2, 3), (-1, 0, 1), (-2, -1, 0, 1), (0, 2), (-1, 1)])
@pytest.mark.parametrize("states", [2, 5, 9])
def test_the_page_has_the_schedule(moves: tuple[int, ...], states: int) -> None:
    """The search from interval 1 finds the interval and the times that the code finds from a bound."""
    models = made_models(words=2, states=states, moves=moves, ends=tuple(range(states)), frames=20)
    plan = plan_trellis(word_trellis(models.shape), 20)
    nodes, interval, ready, entries = words.planned(models.shape.to_params(), 1)
    assert (interval, ready, tuple(entries)) == (plan.interval, plan.ready.tolist(), plan.entries)
    assert [(vertex, [o[0] for o in operands]) for vertex, operands in nodes] == [
        (node.vertex, [o.node for o in node.operands]) for node in plan.nodes
    ]


def test_from_sound_to_word_over_tls(tmp_path: Path) -> None:
    """TLS, frames, HELLO, the offer, the front end and the protocol, all of the plain client's own."""
    bundles = {"whole": released(tmp_path / "whole"), "far": released(tmp_path / "far", mfcc=FAR, seed=10)}
    for name, mfcc in (("whole", WHOLE), ("far", FAR)):
        with serving(tmp_path / f"server {name}", {name: bundles[name]}, limit=100) as running:
            host, port = running.process.address.host, running.process.address.port
            sound = voice(3)
            heard = front_end.features(sound.numpy(), to_plain(mfcc))
            with running.connect(name) as client:
                expected = client.recognize(sound, RATE).value
            assert words.ask_service(host, port, running.pin, [heard]) == [expected]
            assert words.ask_service(host, port, running.pin, [heard] * 4, "ahead") == [expected] * 4
            with pytest.raises(ConnectionError, match="pinned"):
                words.ask_service(host, port, "00" * 32, [heard])

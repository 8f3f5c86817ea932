"""Test vectors of the wire, as this package computes them: `python -m tests.vectors` writes them as JSON.

Whoever writes a client in another language checks its parts by them (`docs/reference/wire.md`). Secrets are fixed here
by replacing, in this test code alone, the functions that draw them.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from ppspeech.audio import MfccConfig, in_usual_range
from ppspeech.audio.mfcc import Mfcc
from ppspeech.crypto import Kind as CryptoKind
from ppspeech.crypto import Ring
from ppspeech.crypto.lattice import Precision, key_holder, plan_product, public_key, zeros
from ppspeech.crypto.lattice.blake2xb import expand_seeds
from ppspeech.crypto.lattice.matrix_product import _query_polynomials, client_finish
from ppspeech.crypto.lattice.ntt import quotients_of, transform_of
from ppspeech.crypto.lattice.parameters import LatticeParameters
from ppspeech.crypto.lattice.residues import from_residues, to_residues
from ppspeech.crypto.lattice.wire import dump_reply, key_identity
from ppspeech.crypto.numbers import Scale
from ppspeech.crypto.packing import pack_numbers
from ppspeech.crypto.points import base_times, hash_to_group
from ppspeech.crypto.shares import LogAdd, ShareEngine, text_residues
from ppspeech.crypto.shares.correlations import Asked, Products
from ppspeech.crypto.shares.cost import TableShape
from ppspeech.crypto.shares.engine import FlightChannel
from ppspeech.crypto.shares.look_up import ask_tables
from ppspeech.crypto.shares.select import multiply_bit
from ppspeech.crypto.transfer import base, codes, extension
from ppspeech.crypto.transfer.bit_matrix import ColumnStreams, transpose_bits
from ppspeech.crypto.transfer.block_hash import BlockHash
from ppspeech.crypto.transfer.check import digest, hash_columns
from ppspeech.crypto.transfer.codes import Batch, CodeReceiver
from ppspeech.crypto.transfer.extension import OtReceiver, OtSender
from ppspeech.crypto.transfer.setup import Side
from ppspeech.network.channel.frames import ABORT, ABORT_PAYLOAD, HELLO, NO_SESSION, pack_header
from ppspeech.network.channel.hello import Hello, canonical, session_id
from ppspeech.protocols import Kind
from ppspeech.protocols.scores.monomials import monomials_of
from ppspeech.protocols.scores.states import WordShape
from ppspeech.protocols.trellis.schedule import plan_trellis
from ppspeech.protocols.words import KeywordJob
from ppspeech.protocols.words.recursion import word_trellis
from ppspeech.service.requests import Ask, Request, send_ready
from ppspeech.service.tasks.words import Words
from tests.vectors.drawn import drawn
from tests.vectors.sentences import sentences

FOLDER = Path(__file__).parent
Plain = dict[str, Any]

SHAPE = WordShape(frames=12, dimensions=3, terms="full", words=3, states=3, ends=(2,))
"""The model that examples are of: three words of three states each."""


class Script:
    """A channel that keeps what is sent and gives what was written before."""

    def __init__(self, *replies: bytes) -> None:
        self.sent: list[bytes] = []
        self._replies: Iterator[bytes] = iter(replies)

    def send(self, kind: int, payload: Any) -> None:
        self.sent.append(bytes(payload))

    def receive(self, kind: int, size: int | None = None, *, at_most: int | None = None) -> bytes:
        return next(self._replies)


def frames() -> Plain:
    """Frames, HELLO and the session's name; requests; flights."""
    client = Hello("digits", {"model": "ab" * 32}, bytes(range(16)))
    server = Hello("digits", {"model": "ab" * 32}, bytes(range(16, 32)))
    session = session_id(client, server)
    request = Request(Ask.WORDS, "frames", 1).encode()
    ready = Script(), Script(), Script()
    send_ready(ready[0], True, None)
    send_ready(ready[1], True, 819)
    send_ready(ready[2], False, 0)
    flight = Script()
    flying = FlightChannel(flight)
    flying.send(CryptoKind.PRODUCT, b"\1\2\3")
    flying.send(CryptoKind.ASK, b"\4")
    flying.flush()
    return {
        "hello_client": (pack_header(HELLO, NO_SESSION, 0, len(client.encode())) + client.encode()).hex(),
        "hello_server": (pack_header(HELLO, NO_SESSION, 0, len(server.encode())) + server.encode()).hex(),
        "session": session.hex(),
        "request_frame": (pack_header(Kind.REQUEST, session, 1, len(request)) + request).hex(),
        "abort_frame": (pack_header(ABORT, session, 2, 1) + ABORT_PAYLOAD).hex(),
        "request_words": request.hex(),
        "request_words_garbled_of_4": Request(Ask.WORDS, "garbled", 4).encode().hex(),
        "request_ping": Request(Ask.PING).encode().hex(),
        "request_bye": Request(Ask.BYE).encode().hex(),
        "ready_uncounted": ready[0].sent[0].hex(),
        "ready_819_left": ready[1].sent[0].hex(),
        "refused_0_left": ready[2].sent[0].hex(),
        "flight_of_product_010203_and_ask_04": flight.sent[0].hex(),
    }


def encodings() -> Plain:
    """Numbers, texts, shapes and what two parties agree on."""
    numbers = [(1, [1, 0, 1, 1, 0, 0, 0, 1, 1]), (3, [1, 2, 3, 4, 5]), (5, [31, 0, 17]), (8, [1, 255])]
    numbers += [(9, [256, 511]), (21, [1, 2**21 - 1]), (25, [2**24]), (56, [2**56 - 2])]
    mfcc = MfccConfig(cepstra=3, deltas=0)
    terms = Words("keyword_hmm", SHAPE, mfcc, None, ("frames",), (1,))
    return {
        "numbers": [
            {"width": width, "numbers": each, "bytes": pack_numbers(np.array(each, np.uint64), width).hex()}
            for width, each in numbers
        ],
        "labels": [
            {"text": text, "label_bytes": 14, "residues": text_residues([text], 14)[0].tolist()}
            for text in ("yes", "Zoë", "caterpillar")
        ],
        "shape": SHAPE.to_params(),
        "shape_canonical": canonical(SHAPE.to_params()).decode(),
        "agreement": terms.agreement("cd" * 32),
        "shortest": SHAPE.shortest,
        "monomials_of_3_and_minus_2": {
            terms: monomials_of(np.array([[3.0, -2.0]]), terms)[0].tolist() for terms in ("full", "diagonal", "linear")
        },
    }


def transfers() -> Plain:
    """Base transfers, hashes, columns, checks and both extensions."""
    secret = bytes([7]) + bytes(31)
    point = base_times(secret)
    answer = b"".join(base_times(bytes([n]) + bytes(31)) for n in (11, 13)) + b"".join(
        base_times(bytes([n]) + bytes(31)) for n in (17, 19)
    )
    with mock.patch.object(base, "random_scalar", return_value=secret):
        keys, said = base.offer_keys(Script(answer), 2)
    name = hashlib.sha256(b"ppspeech setup" + said).digest()[:16]
    uses = {use.decode(): hashlib.sha256(name + use).digest()[:16].hex() for use in (b"0", b"1", b"n", b"label")}
    hasher = BlockHash(bytes.fromhex(uses["0"]))
    rows = np.frombuffer(drawn("rows", 64), "<u8").astype(np.uint64)
    wide = np.empty((1, 1), np.uint64)
    hasher.hash_wide(rows[:4].reshape(1, 4), np.zeros((1, 4), np.uint64), 5, wide, 64)
    stream = ColumnStreams(np.frombuffer(drawn("column", 16), np.uint8).reshape(1, 16))
    columns = np.frombuffer(drawn("columns", 128 * 16), np.uint8).reshape(128, 16)
    challenge = hashlib.sha256(b"challenge").digest()
    hashed = hash_columns(challenge, columns[:2])
    turned = transpose_bits(columns)
    return {
        "base": {
            "secret_scalar": secret.hex(),
            "point": point.hex(),
            "reply": answer.hex(),
            "keys": [[bytes(key).hex() for key in pair] for pair in keys],
            "said": said.hex(),
            "hash_to_group_of_abc": hash_to_group(b"abc").hex(),
        },
        "setup": {"id": name.hex(), "hash_keys": uses},
        "block_hash": {
            "key": uses["0"],
            "row": rows[:2].astype("<u8").tobytes().hex(),
            "number": 5,
            "hash": hasher.hash_blocks(rows[:2].reshape(1, 2), 5).astype("<u8").tobytes().hex(),
            "wide_row": rows[:4].astype("<u8").tobytes().hex(),
            "wide_hash_first_8": wide.astype("<u8").tobytes().hex(),
        },
        "column_stream": {
            "key": drawn("column", 16).hex(),
            "first_128_bits": stream.read(128)[0].tobytes().hex(),
            "next_256_bits": stream.read(256)[0].tobytes().hex(),
        },
        "transposition": {
            "columns": "SHAKE-128 of 'columns', 16 bytes a column, 128 columns",
            "rows_sha256": hashlib.sha256(turned.astype("<u8").tobytes()).hexdigest(),
            "row_0": turned[0].astype("<u8").tobytes().hex(),
            "row_127": turned[127].astype("<u8").tobytes().hex(),
        },
        "check": {
            "challenge": challenge.hex(),
            "columns": [column.tobytes().hex() for column in columns[:2]],
            "hashes": [each.tobytes().hex() for each in hashed],
            "digest": digest(hashed).hex(),
        },
        "code_words": {str(w): codes._code_words()[w].astype("<u8").tobytes().hex() for w in (0, 1, 2, 5, 255)},
        "pairs": _extended("pairs", 128),
        "code": _extended("code", 256),
        "sender": _sent(),
    }


def _keys(label: str, columns: int) -> Any:
    return np.frombuffer(drawn(f"keys of {label}", columns * 32), np.uint8).reshape(columns, 2, 16)


def _extended(label: str, columns: int) -> Plain:
    """What a receiver of extended transfers sends for a few choices, and gets."""
    hasher, channel = BlockHash(drawn("hash", 16)), Script()
    blind = drawn("blind", 256 - 5)
    if columns == 128:
        receiver = OtReceiver(_keys(label, columns), hasher, b"label")
        with mock.patch.object(extension, "uniform_bytes", lambda count: blind[:count]):
            found = receiver.random(channel, np.array([1, 0, 1, 1, 0], np.bool_))
        told: Plain = {"choices": [1, 0, 1, 1, 0], "residues": [str(each) for each in found]}
    else:
        choosing = CodeReceiver(_keys(label, columns), hasher, b"label")
        chosen = bytes([3, 1, 200, 77, 31])
        with (
            mock.patch.object(extension, "uniform_bytes", lambda count: blind[:count]),
            mock.patch.object(codes, "uniform_bytes", return_value=chosen),
        ):
            batches = choosing.random(channel, [Batch(2, 1, 2), Batch(8, 27, 3)])
        told = {
            "batches": [{"bits": 2, "width": 1, "count": 2}, {"bits": 8, "width": 27, "count": 3}],
            "choices": [int(each) for choices, _ in batches for each in choices],
            "pads": [int(each) for _, pads in batches for each in pads],
        }
    message = channel.sent[0]
    return {
        "keys": f"SHAKE-128 of 'keys of {label}', 32 bytes a column: key 0, key 1",
        "hash_key": drawn("hash", 16).hex(),
        "label": b"label".hex(),
        "blind": "SHAKE-128 of 'blind', 251 bytes, a choice each",
        **told,
        "message_bytes": len(message),
        "message_sha256": hashlib.sha256(message).hexdigest(),
        "message_end": message[-(16 * (1 if columns == 128 else 8) + 32) :].hex(),
    }


def _sent() -> Plain:
    """The other side of `pairs`: what its sender makes of the same message."""
    channel = Script()
    blind = drawn("blind", 256 - 5)
    with mock.patch.object(extension, "uniform_bytes", lambda count: blind[:count]):
        OtReceiver(_keys("pairs", 128), BlockHash(drawn("hash", 16)), b"label").random(
            channel, np.array([1, 0, 1, 1, 0], np.bool_)
        )
    secret = np.unpackbits(np.frombuffer(drawn("secret", 16), np.uint8), bitorder="little").astype(np.bool_)
    keys = _keys("pairs", 128)[np.arange(128), secret.astype(int)]
    sender = OtSender(secret, np.ascontiguousarray(keys), BlockHash(drawn("hash", 16)), b"label")
    zero, one = sender.random(Script(channel.sent[0]), 5)
    return {
        "secret": "SHAKE-128 of 'secret', 16 bytes: the bit of column i is bit i % 8 of byte i // 8",
        "message": "that of pairs",
        "zero": [str(each) for each in zero],
        "one": [str(each) for each in one],
    }


class Stocked(ShareEngine):
    """The second party's engine, with correlations that are written down."""

    def __init__(self, channel: Any, asked: Asked | None = None, products: Products | None = None) -> None:
        self.channel, self.party, self.correlations = channel, Side.SECOND, self
        self._asked, self._products = asked, products

    def take_asked(self, shape: TableShape, count: int) -> Any:
        return self._asked

    def take_products(self, count: int) -> Any:
        return self._products


def shares() -> Plain:
    """Messages on shares, and what a program takes."""
    residues = np.array([5, 2**24, 123456], np.uint64)
    bits, choices = np.array([1, 0, 1], np.uint8), np.array([1, 1, 0], np.uint8)
    got, zero, step = (np.frombuffer(drawn(each, 24), "<u8").astype(np.uint64) for each in ("got", "zero", "step"))
    other = drawn("other", 12)
    channel = Script(other)
    result = multiply_bit(Stocked(channel, None, Products(choices, got, zero, step)), bits, residues, Ring(25))
    indices, random = np.array([3, 17, 63], np.uint8), np.array([9, 50, 1], np.uint8)
    reply = drawn("tables", 3 * 64 * 2 // 8)
    asking = Script(reply)
    pads = np.array([1, 3, 0], np.uint8)
    (opened,) = ask_tables(Stocked(asking, Asked(random, pads)), [TableShape(6, 2)], [indices])
    adding = LogAdd(Ring(25), 7, 4)
    return {
        "product": {
            "k": 25,
            "bits": bits.tolist(),
            "residues": residues.tolist(),
            "choices": choices.tolist(),
            "got": [str(each) for each in got],
            "zero": [str(each) for each in zero],
            "one_less_zero": [str(each) for each in step],
            "received": other.hex(),
            "sent": channel.sent[0].hex(),
            "share": result.tolist(),
        },
        "ask": {
            "bits": 6,
            "width": 2,
            "indices": indices.tolist(),
            "choices": random.tolist(),
            "pads": pads.tolist(),
            "sent": asking.sent[0].hex(),
            "received": "SHAKE-128 of 'tables', 48 bytes",
            "opened": opened.tolist(),
        },
        "log_add_blocks": [
            {"k": k, "fraction": f, "count": count, "widths": LogAdd(Ring(k), f, max(0, f - 3)).upper(count)}
            for k, f, count in ((21, 6, 10), (25, 7, 10), (25, 7, 500), (27, 7, 10), (30, 7, 10), (32, 7, 10))
        ],
        "log_add_table_k25_fraction7": adding.table.tolist(),
        "costs": [_cost(**options) for options in _PROGRAMS],
    }


_PROGRAMS: list[Plain] = [
    {},
    {"operation": "viterbi"},
    {"operation": "viterbi", "utterances": 4, "ahead": 2},
    {"components": 3, "reject": True},
    {"ahead": 8, "utterances": 2},
    {"moves": (0, 1, 2), "ends": (0, 1, 2)},
    {"moves": (-1, 0, 1), "starts": (0, 2), "ends": (1, 2)},
    {"bits": 25, "floor": 100, "reach": 18},
    {"bits": 21, "operation": "viterbi"},
    {"bits": 30},
]


def _cost(utterances: int = 1, ahead: int = 1, **changes: Any) -> Plain:
    """What a job takes: tables by shape, products, online bytes; and its schedule."""
    shape = WordShape(**(SHAPE.to_params() | {"ends": (2,), "moves": (0, 1), "starts": (0,)} | changes))
    job = KeywordJob(shape, utterances, ahead)
    cost = job.shares_cost
    plan = plan_trellis(word_trellis(shape), shape.frames, ahead=ahead)
    return {
        "changes": {"utterances": utterances, "ahead": ahead, **changes},
        "tables": {f"{bits},{width}": count for (bits, width), count in sorted(cost.tables.items())},
        "products": cost.products,
        "online_bytes_client": cost.bytes_second,
        "online_bytes_server": cost.bytes_first,
        "slots": len(plan.slots),
        "joined_in_slots": [len(slot.joined) for slot in plan.slots],
    }


def _words(residues: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(residues).astype("<u8").tobytes()).hexdigest()


def _fixed_errors(ring: LatticeParameters) -> Callable[..., Any]:
    """In place of `add_errors_`: the error of coefficient i is i mod 7, less 3."""
    errors = (np.arange(ring.degree) % 7 - 3).astype(np.int64)

    def add(residues: Any, _: LatticeParameters) -> Any:
        residues[:] = (residues.view(np.int64) + errors) % np.int64(ring.prime)
        return residues

    return add


@contextmanager
def _fixed_holder(coins: bytes) -> Iterator[key_holder.KeyHolder]:
    """A key whose secret is s_i = (7 i^2 + i) mod 3, less 1, without SEAL; errors and seeds are fixed too."""
    ring = LatticeParameters()
    place = np.arange(ring.degree)
    ternary = ((7 * place * place + place) % 3 - 1).astype(np.int64)
    secret = transform_of(ring).forward_((ternary % ring.prime).astype(np.uint64)[None])[0]
    holder = key_holder.KeyHolder.__new__(key_holder.KeyHolder)
    holder.parameters, holder.coins, holder._secret = ring, coins, secret
    holder._secret_quotients = quotients_of(secret, ring.prime)
    seeds = drawn("seeds", 64 * 64)
    with (
        mock.patch.object(public_key, "add_errors_", _fixed_errors(ring)),
        mock.patch.object(zeros, "add_errors_", _fixed_errors(ring)),
        mock.patch.object(zeros, "uniform_bytes", lambda count: seeds[:count]),
    ):
        holder.public_key = public_key.first_half(secret, coins, ring)
        holder.identity = key_identity(holder.public_key, coins)
        holder._zeros = key_holder.SingleUse(zeros.SecretZeros(ring, secret, holder._secret_quotients))
        yield holder


def lattice() -> Plain:
    """Ring, seeds, keys, cuts, queries and replies."""
    ring = LatticeParameters()
    transform = transform_of(ring)
    expanded = expand_seeds([drawn("seed", 64)], ring)[0]
    ramp = np.arange(1, ring.degree + 1, dtype=np.uint64)
    coins = bytes(range(16))
    a = public_key.second_half(coins, ring)
    plan = KeywordJob(SHAPE).plan
    features = np.array([[(3 * i + 5 * j) % 17 - 8 for j in range(plan.inner)] for i in range(plan.rows)], np.float64)
    with _fixed_holder(coins) as holder:
        query = holder.query(plan.job, _query_polynomials(plan, features))
        count = plan.job.groups * plan.job.outputs
        words = np.frombuffer(drawn("reply", 4 * count * (len(plan.job.kept) + ring.degree)), "<u4")
        words = words.reshape(count, -1).astype(np.uint64)
        kept = len(plan.job.kept)
        reply = dump_reply(plan.job.identity, holder.identity, words[:, :kept], words[:, kept:])
        share = client_finish(holder, plan, reply)
        public = holder.public_key
        identity = holder.identity
    some = np.array([0, 1, ring.prime // 3, ring.prime - 1], np.uint64)
    return {
        "degree": ring.degree,
        "prime": ring.prime,
        "root": int(transform.roots[ring.degree // 2]),
        "expansion": {
            "seed": drawn("seed", 64).hex(),
            "first_4": expanded[:4].tolist(),
            "last_2": expanded[-2:].tolist(),
            "sha256": _words(expanded),
        },
        "transform_of_1_2_3": {
            "first_4": transform.forward_(ramp[None].copy())[0, :4].tolist(),
            "sha256": _words(transform.forward_(ramp[None].copy())[0]),
        },
        "to_32_bits": {"residues": some.tolist(), "words": to_residues(some, ring).tolist()},
        "from_32_bits": {
            "words": [0, 1, 2**31, 2**32 - 1],
            "residues": from_residues(np.array([0, 1, 2**31, 2**32 - 1], np.uint64), ring).tolist(),
        },
        "key": {
            "secret": "coefficient i is (7 i^2 + i) mod 3, less 1",
            "errors": "of coefficient i: i mod 7, less 3",
            "coins": coins.hex(),
            "a_first_2": a[:2].tolist(),
            "a_sha256": _words(a),
            "public_first_21": public[:21].hex(),
            "public_sha256": hashlib.sha256(public).hexdigest(),
            "identity": identity.hex(),
        },
        "cuts": [_cut(*sizes) for sizes in _CUTS],
        "query": {
            "features": "row i, number j: (3 i + 5 j) mod 17, less 8",
            "cut": f"{plan.rows} x {plan.inner} x {plan.columns}, the first of cuts",
            "seeds": "SHAKE-128 of 'seeds', 64 bytes a polynomial",
            "header": query[:20].hex(),
            "bytes": len(query),
            "sha256": hashlib.sha256(query).hexdigest(),
            "polynomial_0": {
                str(place): int(value)
                for place, value in enumerate(_query_polynomials(plan, features)[0][:64])
                if value
            },
        },
        "reply": {
            "body": "SHAKE-128 of 'reply', after the header",
            "bytes": len(reply),
            "share_row_0": share[0].tolist(),
            "share_sha256": _words(share),
        },
    }


_CUTS = [
    (12, 10, 9, 25, 7),
    (98, 820, 50, 25, 7),
    (98, 79, 51, 32, 14),
    (400, 79, 50, 21, 6),
    (1, 157, 7, 25, 7),
    (5, 1, 3, 25, 7),
]


def _cut(rows: int, inner: int, columns: int, bits: int, fraction: int) -> Plain:
    precision = Precision(limit=64.0, weights=Scale(28, 13), result=Scale(bits, fraction))
    plan = plan_product(rows, inner, columns, precision)
    return {
        "rows": rows,
        "inner": inner,
        "columns": columns,
        "bits": bits,
        "fraction": fraction,
        "limit": 64.0,
        "block": [plan.block_rows, plan.block_inner, plan.block_columns],
        "groups_terms_outputs": [plan.job.groups, plan.job.terms, plan.job.outputs],
        "spelled": repr(plan.job),
        "identity": plan.job.identity.hex(),
        "query_bytes": plan.job.query_bytes,
        "reply_bytes": plan.job.reply_bytes,
    }


_FRONT_ENDS: list[Plain] = [
    {"cepstra": 4, "deltas": 2},
    {"cepstra": 5, "deltas": 1, "cmvn": "none", "level": "keep"},
    {"cepstra": 3, "deltas": 0, "lifter": 0, "cmvn": "none", "window_s": 0.02, "mel_filters": 13, "window": "hann"},
]


def sound() -> Any:
    """A tenth of a second: sample n is sin(n^2 / 4000) / 2, at 16 kHz."""
    place = np.arange(1600, dtype=np.float64)
    return np.sin(place * place / 4000) / 2


def front_end() -> Plain:
    """Sound to frames."""
    import torch

    found = []
    for changes in _FRONT_ENDS:
        config = MfccConfig(**changes)
        rows = in_usual_range(Mfcc(config, torch.float64)(torch.from_numpy(sound())).features[0], config)
        found.append({"changes": changes, "frames": len(rows), "row_0": _rounded(rows[0]), "row_3": _rounded(rows[3])})
    return {"sound": "sample n is sin(n^2 / 4000) / 2, 1600 samples at 16000 Hz", "tolerance": 1e-3, "of": found}


def _rounded(row: Any) -> list[float]:
    return [round(float(value), 4) for value in row]


ALL: dict[str, Callable[[], Plain]] = {
    "frames": frames,
    "encodings": encodings,
    "transfers": transfers,
    "shares": shares,
    "lattice": lattice,
    "front_end": front_end,
    "sentences": sentences,
}


def written(name: str) -> str:
    """A file's text, as the code of this package computes it."""
    return json.dumps(ALL[name](), indent=1, ensure_ascii=False) + "\n"


def read(name: str) -> Plain:
    """A stored file."""
    found: Plain = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return found

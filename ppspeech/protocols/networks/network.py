"""A network on frames: the client has a voice, the server weights; the client learns labels, and that is all.

    a layer   1. client → server   its share of the layer's input (of the first: the frames), encrypted under its key
              2. server → client   times the weights, masked; the server adds what its own share gives, and the bias:
                                   each now has a share of every pre-activation
              3. both              the activation by lines, and the pooling, on shares; wider shares where the next
                                   layer needs them
    the end   4. both              a tournament of the outputs, of every frame that comes out; where labels are told,
                                   those that repeat the frame before count as the blank
              5. both              the labels, the server's, by transfer, to the client

Nobody sees a pre-activation, an activation, a score or a margin. No value leaves the range of its shares (`range`).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ppspeech.arrays import Reals, Residues
from ppspeech.crypto import Ring
from ppspeech.crypto.shares import (
    TEXT_RING,
    Cost,
    Shared,
    ShareEngine,
    all_bits,
    blank,
    multiply_loaded,
    read_text,
    record,
    round_local,
    tell_texts,
    text_size,
    widen,
)
from ppspeech.crypto.transfer import Side
from ppspeech.errors import PpspeechError, ProtocolError, RangeError
from ppspeech.protocols.meeting import Meeting, meet
from ppspeech.protocols.networks.range import NetworkArrays
from ppspeech.protocols.networks.shape import NetworkShape
from ppspeech.protocols.party import Party, register_protocol
from ppspeech.protocols.search.tournament import best_of, bits_of

HALF = 16
"""Bits of the parts that a share is cut into, so that products of doubles are exact."""

network = register_protocol(
    "network",
    functionality="the label that the server's network gives the client's utterance, or the labels of its frames where "
    "they begin (greedy CTC: not how long each lasts), to the client",
    leakage="sizes alone: the padded length, the layers with their activations and pools, a power of two that holds "
    "each layer's values",
    assumptions=(
        "a client may do anything, and learns as many bits of the network as name its labels, but of its choice; a "
        "server that cheats learns nothing, and makes the labels wrong; checked transfers, ring-LWE at 128 bits, "
        "Diffie-Hellman on ed25519, AES a random permutation, SHA-256 and Blake2xb oracles"
    ),
)


@lru_cache(maxsize=64)
def network_cost(shape: NetworkShape) -> Cost:
    """All that happens on shares; the products' bytes are `product_bytes`."""

    def program(engine: ShareEngine) -> None:
        last = follow_layers(engine, shape)
        if shape.output != "scores":
            tell(engine, shape, last, None)

    return record(program)


def product_bytes(shape: NetworkShape) -> int:
    """Of all layers' ciphertexts, both ways."""
    return sum(shape.product(number).total_bytes for number in range(len(shape.layers)))


def network_rounds(shape: NetworkShape) -> int:
    """Round trips online: a product a layer, and those on shares."""
    return len(shape.layers) + network_cost(shape).rounds


def prepare_network(met: Meeting, shape: NetworkShape) -> ShareEngine:
    """Offline, both parties at the same time, for one utterance: transfers, and encryptions of zero for all layers."""
    return met.prepare([shape.product(number) for number in range(len(shape.layers))], network_cost(shape))


def ask_network(
    met: Meeting, shape: NetworkShape, utterance: Reals, engine: ShareEngine | None = None
) -> list[str | None]:
    """The client's side, in a session of the meeting: a label for every frame that comes out, None where none begins.
    `utterance`: `(frames, dimensions)`. `engine`: from `prepare_network`; without one it is prepared here. Raises
    RangeError before anything is sent, for an utterance that the network does not take.
    """
    frames = shape.clipped(utterance)
    engine = engine or prepare_network(met, shape)
    told = tell(engine, shape, share_scores(met, engine, shape, frames), None)
    assert told is not None
    return [read_text(each) for each in told]


def answer_network(met: Meeting, own: NetworkArrays, engine: ShareEngine | None = None) -> None:
    """The server's side, in a session of the meeting. Raises ProtocolError for a client that breaks the protocol."""
    engine = engine or prepare_network(met, own.shape)
    tell(engine, own.shape, share_scores(met, engine, own.shape, own), own)


def follow_layers(engine: ShareEngine, shape: NetworkShape) -> Residues:
    """All layers on nothing, for a record of what they cost: blank shares of the outputs."""
    share = blank(shape.frames, shape.dimensions)
    for number, layer in enumerate(shape.layers):
        share = activate(engine, shape, number, blank(shape.rows(number), layer.outputs))
    return share


def share_scores(met: Meeting, engine: ShareEngine, shape: NetworkShape, own: Reals | NetworkArrays) -> Residues:
    """Steps 1 to 3 for all layers: our share of the outputs, `(frames that come out, labels)`, mod 2^(R + f). `own`:
    the client's frames, as `NetworkShape.clipped` gives them, or the server's network.
    """
    share: Residues = np.zeros((shape.frames, shape.dimensions), np.uint64)
    for number, layer in enumerate(shape.layers):
        plan, before = shape.product(number), Ring(max(shape.rings.inputs[number], 1))
        if isinstance(own, NetworkArrays):
            product = met.multiply(plan, own.encoded[number]) + own.offsets[number]
            if number:
                signed = before.to_signed(layer.windows(share))
                product = product + _scaled_down(signed, own.integers[number], shape.weight_bits(number))
        else:
            given = own
            if number:
                signed = before.to_signed(share)
                given = np.ldexp(np.maximum(signed, 1 - (1 << (before.bits - 1))).astype(np.float64), -shape.fraction)
            product = met.multiply(plan, layer.windows(given))
        share = activate(engine, shape, number, product)
    return share


def activate(engine: ShareEngine, shape: NetworkShape, number: int, share: Residues) -> Residues:
    """Step 3, of a layer: from shares of z, `(windows, outputs)`, to what the next layer takes, or the outputs."""
    layer, last = shape.layers[number], number == len(shape.layers) - 1
    signs = shape.signs(number)
    values = Shared(engine, share, Ring(shape.rings.results[number]))
    with engine.in_flights():
        if layer.lines is not None:
            values = layer.lines.of_shares(values, signs, shape.fraction)
        if layer.pool != "none":
            values = values[: len(share) // layer.pool_width * layer.pool_width]
            pooled = values.reshape(-1, layer.pool_width, layer.outputs)
            if layer.pool == "mean":
                values = round_local(pooled.sum(axis=1), layer.mean_bits)
            else:
                values = _largest(pooled, signs)
        if last:
            return values.in_ring(signs).own
        wanted = Ring(shape.rings.inputs[number + 1])
        if values.ring.bits < wanted.bits:
            values = widen(values, wanted)
    return values.residues


def tell(engine: ShareEngine, shape: NetworkShape, scores: Residues, own: NetworkArrays | None) -> Residues | None:
    """Steps 4 and 5, from shares of the outputs, `(frames, labels)`: the labels' texts, `(frames, residues)`, to the
    client; None for the server. A frame in which no label begins has an empty one. Raises RangeError, before anything
    is said, where scores are for what comes after.
    """
    if shape.output == "scores":
        raise RangeError("the scores of this network stay on shares, and no label of it is told: ask for a sentence")
    first = 0 if shape.output == "labels" else 1  # the blank's place is nobody's
    places = engine.public(np.arange(first, first + shape.labels, dtype=np.uint64))
    ring = shape.signs(len(shape.layers) - 1)
    with engine.in_flights():
        loads = np.broadcast_to(places, scores.shape)
        _, place = best_of(Shared(engine, scores, ring), loads, shape.load)
        if shape.output == "labels":
            place = _beginnings(engine, place, shape.load)
        texts = None if own is None else own.texts
        size = shape.labels - 1 + first, text_size(shape.label_bytes)
        return tell_texts(engine, place, texts, size, TEXT_RING)


def _beginnings(engine: ShareEngine, place: Residues, width: int) -> Residues:
    """Places that differ from the one before, and 0 for those that do not: `(frames,)`, by exclusive or."""
    changed = place[1:] ^ place[:-1]
    same = all_bits(engine, engine.flip(bits_of(changed, width)))
    begins = np.concatenate((engine.flip(np.zeros(1, np.uint8)), engine.flip(same)))
    _, kept = multiply_loaded(engine, begins, np.zeros(len(place), np.uint64), place, Ring(1), width)
    return kept


def _largest(values: Shared, signs: Ring) -> Shared:
    """The largest along the second axis, `(frames, pool, outputs)`, by a tournament; compared in a smaller ring."""
    own, engine, ring = values.own, values.engine, values.ring
    while own.shape[1] > 1:
        duels = own.shape[1] // 2
        left, right = own[:, : 2 * duels : 2], own[:, 1 : 2 * duels : 2]
        apart = Shared(engine, ring.reduce(left - right), ring)
        stays = ~apart.in_ring(signs).is_negative()
        won = right + (stays * apart).own
        own = np.concatenate((won, own[:, 2 * duels :]), axis=1)
    return Shared(engine, own[:, 0], ring)


def _scaled_down(share: Any, integers: Reals, bits: int) -> Residues:
    """Our share, signed, times whole weights, in units of 2^-bits: rounded. Parts of 16 bits keep doubles exact."""
    low = (share & ((1 << HALF) - 1)).astype(np.float64) @ integers
    high = (share >> HALF).astype(np.float64) @ integers
    whole = (high.astype(np.int64) << HALF) + low.astype(np.int64)
    return np.asarray(((whole + (1 << (bits - 1))) >> bits).view(np.uint64))


def check_told(shape: NetworkShape, labels: Sequence[str | None]) -> None:
    """Refuse an answer without a label where one is due. To be called when all has been said: the server must not see
    it. Raises ProtocolError.
    """
    if shape.output == "word" and None in labels:
        raise ProtocolError(
            "no label beat all others, which cannot be within the range of the shares: the server does not follow the "
            "protocol, or serves another network than it says"
        )


def read_network(shape: NetworkShape, plain: Mapping[str, Any]) -> NetworkArrays:
    """A network from what JSON can hold: `matrices`, `biases` and `labels`. Raises PpspeechError for what is none."""
    try:
        matrices = tuple(np.array(each, np.float64) for each in plain["matrices"])
        biases = tuple(np.array(each, np.float64) for each in plain["biases"])
        labels = () if shape.output == "scores" else tuple(plain["labels"])
        return NetworkArrays(shape, matrices, biases, labels)
    except KeyError as missing:
        raise PpspeechError(f"a network has matrices, biases and labels: {missing} is missing") from None
    except (TypeError, ValueError) as error:
        raise PpspeechError(f"this is no network: {error}") from None


@network.party("client")
def client(party: Party, utterance: Reals, *, shape: Mapping[str, Any]) -> list[str | None]:
    """The client's whole program for one utterance, `(frames, dimensions)`; `shape` has a `NetworkShape`'s attributes,
    each layer those of a `Layer`.
    """
    agreed = NetworkShape.from_params(shape)
    frames = np.asarray(utterance, np.float64)
    agreed.clipped(frames)
    met = meet(party.channel, Side.SECOND)
    with met.session():
        labels = ask_network(met, agreed, frames)
    check_told(agreed, labels)
    return labels


@network.party("server")
def server(party: Party, weights: Mapping[str, Any], *, shape: Mapping[str, Any]) -> None:
    """The server's whole program for one utterance; `weights` as `read_network` takes them."""
    own = read_network(NetworkShape.from_params(shape), weights)
    met = meet(party.channel, Side.FIRST)
    with met.session():
        answer_network(met, own)

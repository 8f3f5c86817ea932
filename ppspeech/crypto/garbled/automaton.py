"""A garbled automaton (Mohassel, Niksefat, Sadeghian and Sadeghiyan 2012): a text is read in one round, however long.

The first party has an automaton of Q states and S symbols, both powers of two, the second a text. In step i of a line
every state q has a label L_i(q), every symbol c a key K_i(c), 128 bits each, and there is a cell for each pair:

    cell_i(q ⊕ π_i, c) = L_{i+1}(δ(q, c)) ⊕ H(L_i(q) ⊕ K_i(c), number of the cell)

The reader holds the label of the state it is in and the key of its symbol, the pad of a transfer of one of S, and so
opens one cell a step. The low bits of a label are the row that its state stands in, q ⊕ π_i for a random π_i, and above
them whether it accepts, under a random bit s_i: shares by exclusive or of what the automaton says at every step. That
leaves 127 - log2 Q unknown bits of a label. Each run draws a key for H after the reader has chosen its symbols.

An active reader can choose its text, and no more. An active owner learns nothing from masked choices; it can garble
another automaton.
"""

from collections.abc import Iterator

import numpy as np

from ppspeech.arrays import Bits, Residues, Whole
from ppspeech.crypto.garbled.parties import FRAME_BYTES, KEY_BYTES, LABEL_BYTES
from ppspeech.crypto.message_kinds import Kind
from ppspeech.crypto.packing import pack_numbers
from ppspeech.crypto.randomness import uniform_bytes, uniform_residues
from ppspeech.crypto.shares.cost import TableShape
from ppspeech.crypto.shares.engine import ShareEngine
from ppspeech.crypto.shares.look_up import receive_flips
from ppspeech.crypto.transfer.block_hash import CHUNK, BlockHash
from ppspeech.errors import RangeError

MOST_CELLS = FRAME_BYTES // LABEL_BYTES
"""Of one step of one line: what one message holds."""


def offer_automaton(
    engine: ShareEngine, moves: Whole, accepts: Bits, start: int, lines: int, steps: int, symbol_bits: int
) -> Bits:
    """Be the owner: our shares of whether each line is accepted after each step, `(lines, steps)`. `moves`: δ,
    `(states, symbols)`. `accepts`: of each state after a step, and after the last, `(2, states)`.
    """
    states, symbols = moves.shape
    _check(states, symbols, symbol_bits)
    count, shape = lines * steps, TableShape(symbol_bits, 64)
    offered = engine.correlations.take_offered(shape, 2 * count)
    (flips,) = receive_flips(engine, [shape], [2 * count])
    places = np.arange(symbols) ^ flips[:, None]
    keys = np.take_along_axis(offered.pads, places, axis=1).reshape(lines, steps, 2, symbols)
    hash_key = uniform_bytes(KEY_BYTES)
    hasher = BlockHash(hash_key)
    engine.channel.send(Kind.GARBLE_KEY, hash_key)
    rows = uniform_residues((lines, steps + 1), states.bit_length() - 1).astype(np.int64)
    masks = uniform_residues((lines, steps + 1), 1).astype(np.uint8)
    labels = _labels(states, rows[:, 0], masks[:, 0], accepts[0])
    engine.channel.send(Kind.LABELS, labels[:, start].tobytes())
    number = 0
    for step in range(steps):
        after = _labels(states, rows[:, step + 1], masks[:, step + 1], accepts[int(step == steps - 1)])
        for part in _parts(lines, states * symbols):
            own = np.arange(states) ^ rows[part, step, None]
            at = np.arange(len(own))[:, None]
            held = labels[part][at, own]
            blocks = held[:, :, None, :] ^ keys[part, step].transpose(0, 2, 1)[:, None]
            cells = hasher.hash_blocks(blocks.reshape(-1, 2), number).reshape(blocks.shape)
            cells ^= after[part][at[:, :, None], moves[own]]
            engine.channel.send(Kind.GARBLED, cells.tobytes())
            number += blocks.size // 2
        labels = after
    return masks[:, 1:]


def read_automaton(engine: ShareEngine, text: Whole, states: int, symbol_bits: int) -> Bits:
    """Be the reader of `text`, `(lines, steps)` symbols: our shares, as `offer_automaton` has the others."""
    lines, steps = text.shape
    symbols = 1 << symbol_bits
    _check(states, symbols, symbol_bits)
    asked = engine.correlations.take_asked(TableShape(symbol_bits, 64), 2 * text.size)
    twice = np.repeat(text.reshape(-1), 2).astype(np.uint8)
    engine.channel.send(Kind.ASK, pack_numbers(twice ^ asked.choices, symbol_bits))
    keys = asked.pads.reshape(lines, steps, 2)
    hasher = BlockHash(engine.channel.receive(Kind.GARBLE_KEY, KEY_BYTES))
    labels = _blocks(engine.channel.receive(Kind.LABELS, LABEL_BYTES * lines)).copy()
    found = np.zeros((lines, steps), np.uint8)
    number = 0
    for step in range(steps):
        for part in _parts(lines, states * symbols):
            held = labels[part]
            size = len(held) * states * symbols
            cells = _blocks(engine.channel.receive(Kind.GARBLED, LABEL_BYTES * size))
            rows = (held[:, 0] & np.uint64(states - 1)).astype(np.int64)
            place = (np.arange(len(held)) * states + rows) * symbols + text[part, step]
            opened = cells[place] ^ _hashes(hasher, held ^ keys[part, step], place + number)
            labels[part] = opened
            number += size
        found[:, step] = (labels[:, 0] >> np.uint64(states.bit_length() - 1)) & np.uint64(1)
    return found


def _check(states: int, symbols: int, symbol_bits: int) -> None:
    if states & (states - 1) or symbols != 1 << symbol_bits or states < 2 or not 1 <= symbol_bits <= 8:
        raise RangeError(f"states and symbols are powers of two, got {states} and {symbols}")
    if states * symbols > MOST_CELLS:
        raise RangeError(f"{states} states of {symbols} symbols have more than {MOST_CELLS:,} cells")


def _parts(lines: int, cells: int) -> Iterator[slice]:
    """Lines whose cells of one step make a message."""
    size = max(1, MOST_CELLS // cells)
    return (slice(at, at + size) for at in range(0, lines, size))


def _labels(states: int, rows: Whole, masks: Bits, accepts: Bits) -> Residues:
    """One for every line and state, `(lines, states, 2)`."""
    labels = uniform_residues((len(rows), states, 2))
    low = np.uint64(2 * states - 1)
    said = (np.arange(states) ^ rows[:, None]).astype(np.uint64)
    said |= (accepts ^ masks[:, None]).astype(np.uint64) << np.uint64(states.bit_length() - 1)
    labels[:, :, 0] = (labels[:, :, 0] & ~low) | said
    return labels


def _blocks(data: bytes) -> Residues:
    return np.frombuffer(data, np.uint64).reshape(-1, 2)


def _hashes(hasher: BlockHash, blocks: Residues, numbers: Whole) -> Residues:
    """H of every block under a number of its own."""
    result = np.empty_like(blocks)
    for at in range(0, len(blocks), CHUNK):
        part = slice(at, at + CHUNK)
        inner = hasher.permute(np.ascontiguousarray(blocks[part])).copy()
        tweaked = inner.copy()
        tweaked[:, 0] ^= numbers[part].astype(np.uint64)
        result[part] = hasher.permute(tweaked) ^ inner
    return result

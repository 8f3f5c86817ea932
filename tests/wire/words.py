"""Which word it is: the keyword protocol, as the client."""

import hashlib
import heapq
import json
from typing import Any

from tests.wire.frames import Wire, canonical
from tests.wire.lattice import Cut, Key
from tests.wire.shares import Engine, all_bits, best_places, choose, is_negative, log_add, maximum, walking_carry
from tests.wire.transfers import Setup

LATTICE_KEY, QUERY, REPLY, REQUEST, READY, RESUME = 1, 2, 3, 6, 7, 203
WORDS, BYE, ORDERS = 1, 3, ["frames", "garbled", "average", "ahead"]

__all__ = ["all_bits", "ask_service", "meet", "recognize"]


def ask_service(host: str, port: int, pin: str | None, utterances: list[Any], order: str = "frames") -> list[Any]:
    """The words of utterances, by the first model of words that a server offers."""
    wire = Wire.connect(host, port, pin, "describe", {})
    offer = json.loads(wire.receive(READY))["words"][0]
    wire.close()
    shape = offer["shape"]
    agreed = {"model": offer["fingerprint"], "shape": hashlib.sha256(canonical(shape)).hexdigest()}
    wire = Wire.connect(host, port, pin, offer["name"], agreed)
    setup, key = meet(wire)
    wire.send(REQUEST, bytes([WORDS, ORDERS.index(order)]) + len(utterances).to_bytes(2, "big") + bytes(2))
    if wire.receive(READY, 5)[0] != 1:
        raise ConnectionError("no query is left")
    words = recognize(wire, setup, key, shape, utterances, usual_ahead(shape, len(utterances), order))
    wire.send(REQUEST, bytes([BYE, 0, 0, 1, 0, 0]))
    wire.close()
    return words


def meet(wire: Any) -> tuple[Setup, Key]:
    setup = Setup(wire)
    key = Key(setup.id)
    wire.send(LATTICE_KEY, key.public)
    return setup, key


def usual_ahead(shape: dict[str, Any], utterances: int, order: str) -> int:
    if order == "ahead":
        return 8
    few = utterances * shape["words"] * shape["states"] <= 200 and shape["frames"] > 64
    return 2 if few and shape["operation"] == "viterbi" and shape["moves"][0] == 0 else 1


def recognize(wire: Any, setup: Setup, key: Key, shape: dict[str, Any], utterances: list[Any], ahead: int) -> list[Any]:
    position = setup.position()
    wire.send(RESUME, position)
    if wire.receive(RESUME, len(position)) != position:
        raise ConnectionError("the two parties are at different places")
    bits, fraction = shape["bits"], shape["fraction"]
    if shape["reach"] is not None:
        bits, fraction = 32, 32 - shape["reach"]
    features = [row for each in utterances for row in padded(shape, each)]
    columns = shape["words"] * shape["states"] * shape["components"] + shape["reject"]
    limit = max(1.0, shape["limit"] ** 2)
    cut = Cut(len(features), len(features[0]), columns, limit, bits, fraction)
    last = [len(each) - shortest(shape) for each in utterances]
    dry = Engine()
    name_words(dry, shape, [[0] * columns for _ in features], last, ahead)
    engine = Engine(wire)
    engine.prepare(setup, dry.tables, dry.products)
    wire.send(QUERY, cut.query(key, features))
    scores = cut.shares(key, wire.receive(REPLY, cut.reply_bytes))
    wire.fly(True)
    words = name_words(engine, shape, scores, last, ahead)
    wire.fly(False)
    return words


def padded(shape: dict[str, Any], frames: Any) -> list[list[float]]:
    rows = []
    for frame in frames:
        x = [float(value) for value in frame]
        if shape["radius"] is not None:
            norm = sum(value * value for value in x) ** 0.5
            x = [value * min(1.0, shape["radius"] / max(norm, shape["radius"])) for value in x]
        x = [min(max(value, -shape["limit"]), shape["limit"]) for value in x]
        z = [*x, 1.0]
        if shape["terms"] == "full":
            z = [z[i] * z[j] for i in range(len(z)) for j in range(i, len(z))]
        elif shape["terms"] == "diagonal":
            z = [value * value for value in x] + z
        rows.append(z)
    return rows + [rows[-1]] * (shape["frames"] - len(rows))


def shortest(shape: dict[str, Any]) -> int:
    reached, frames = set(shape["starts"]), 1
    while not reached & set(shape["ends"]):
        reached = {s + m for s in reached for m in shape["moves"] if 0 <= s + m < shape["states"]}
        frames += 1
    return frames


def name_words(
    engine: Engine, shape: dict[str, Any], scores: list[list[int]], last: list[int], ahead: int
) -> list[Any]:
    k, states, words, frames = shape["bits"], shape["states"], shape["words"], shape["frames"]
    ring, reject, count = 1 << k, int(shape["reject"]), len(last)
    if shape["reach"] is not None:
        scores = floored(engine, shape, scores)

    def combined(left: list[int], right: list[int]) -> list[int]:
        if shape["operation"] == "viterbi":
            return maximum(engine, left, right, k)
        return log_add(engine, left, right, k, shape["fraction"])

    def reduced(rows: list[list[int]]) -> list[int]:
        """Each row to one value, in a tree."""
        while (n := len(rows[0])) > 1:
            half = n // 2
            left = [value for row in rows for value in row[:half]]
            right = [value for row in rows for value in row[half : 2 * half]]
            both = combined(left, right)
            rows = [both[at * half : (at + 1) * half] + row[2 * half :] for at, row in enumerate(rows)]
        return [row[0] for row in rows]

    size, parts = words * states, shape["components"]
    flat = reduced([row[v * parts : (v + 1) * parts] for row in scores for v in range(size)])
    emissions = [
        [[flat[(u * frames + t) * size + v] for u in range(count)] for v in range(size)] for t in range(frames)
    ]
    gamma = recursion(shape, emissions, ahead, combined, count)
    rows = []
    first = shortest(shape) - 1
    for u in range(count):
        rows += [[gamma[t][v][u] for t in range(first, frames)] for v in range(size)]
        if reject:
            sums, total = [], 0
            for t in range(frames):
                total = (total + scores[u * frames + t][-1]) % ring
                sums.append(total)
            rows.append(sums[first:])
    width = size + reject
    ended = choose(engine, rows, [place for place in last for _ in range(width)], k)
    by_utterance = [ended[u * width : (u + 1) * width] for u in range(count)]
    found = reduced([[row[w * states + end] for end in shape["ends"]] for row in by_utterance for w in range(words)])
    candidates = [found[u * words : (u + 1) * words] + by_utterance[u][size:] for u in range(count)]
    places = best_places(engine, candidates, k)
    residues, table = -(-shape["label_bytes"] // 7), 1 << (words + reject).bit_length()
    index = [place % table for place in places for _ in range(residues)]
    told = engine.opened(choose(engine, [[0] * table for _ in index], index, 56), 56)
    letters = [
        b"".join(residue.to_bytes(7, "little") for residue in told[u * residues : (u + 1) * residues])
        for u in range(count)
    ]
    return [text.rstrip(b"\0").decode(errors="replace") or None for text in letters]


def floored(engine: Engine, shape: dict[str, Any], scores: list[list[int]]) -> list[list[int]]:
    fraction = 32 - shape["reach"]
    vague, fewer, k = fraction + 4, fraction - shape["fraction"], shape["bits"]
    flat = [value for row in scores for value in row]
    below = is_negative(engine, [value >> vague for value in flat], 32 - vague, walking_carry)
    taken = [(value + (1 << fewer >> 1) >> fewer) % (1 << k) for value in flat]
    kept, size = engine.times(below, taken, k), len(scores[0])
    return [kept[at : at + size] for at in range(0, len(kept), size)]


# The trellis: what is joined when. An operand is (node, delay, frames whose emissions are added).


def recursion(shape: dict[str, Any], emissions: Any, ahead: int, combined: Any, count: int) -> Any:
    ring, frames = 1 << shape["bits"], shape["frames"]
    nodes, interval, ready, entries = (planned if ahead == 1 else planned_ahead)(shape, ahead)
    reached = reach(nodes, entries, frames)
    zero = [0] * count
    scores: dict[tuple[int, int], list[int]] = {(0, entry): zero for entry in entries}

    def value(frame: int, operand: tuple[int, int, int]) -> list[int]:
        node, delay, emits = operand
        own, vertex = list(scores[frame - delay, node]), nodes[node][0]
        for t in range(frame - delay, frame - delay + emits):
            own = [(a + b) % ring for a, b in zip(own, emissions[t][vertex], strict=True)]
        return own

    for slot in range(interval * ((frames - 1) // ahead) + max(ready) + 1):
        joins, passes = [], []
        for node, (_, operands) in enumerate(nodes):
            turn, rest = divmod(slot - ready[node], interval)
            if turn < 0 or rest:
                continue
            for frame in range(turn * ahead, min(turn * ahead + ahead, frames)):
                given = [o for o in operands if frame >= o[1] and reached[frame - o[1]][o[0]]]
                if reached[frame][node] and len(given) == 2:
                    joins.append((frame, node, given))
                elif reached[frame][node] and given:
                    passes.append((frame, node, given[0]))
        if joins:
            left = [x for frame, _, given in joins for x in value(frame, given[0])]
            right = [x for frame, _, given in joins for x in value(frame, given[1])]
            both = combined(left, right)
            for at, (frame, node, _) in enumerate(joins):
                scores[frame, node] = both[at * count : (at + 1) * count]
        while passes:
            later = []
            for frame, node, operand in passes:
                if (frame - operand[1], operand[0]) in scores:
                    scores[frame, node] = value(frame, operand)
                else:
                    later.append((frame, node, operand))
            passes = later
    size = len(emissions[0])
    return [
        [
            [(a + b) % ring for a, b in zip(scores[t, v], emissions[t][v], strict=True)] if reached[t][v] else zero
            for v in range(size)
        ]
        for t in range(frames)
    ]


def arcs_into(shape: dict[str, Any]) -> list[list[int]]:
    """The sources of every state, all words side by side, in the order of sources and then of moves."""
    states = shape["states"]
    into: list[list[int]] = [[] for _ in range(shape["words"] * states)]
    for word in range(shape["words"]):
        for source in range(states):
            for move in shape["moves"]:
                if 0 <= source + move < states:
                    into[word * states + source + move].append(word * states + source)
    return into


def starts(shape: dict[str, Any]) -> list[int]:
    return [word * shape["states"] + state for word in range(shape["words"]) for state in shape["starts"]]


def when_joined(times: list[int]) -> int:
    heapq.heapify(times)
    while len(times) > 1:
        one, other = heapq.heappop(times), heapq.heappop(times)
        heapq.heappush(times, max(one, other) + 1)
    return times[0] if times else 0


def settled(into: list[list[int]], interval: int) -> list[int] | None:
    """The least times >= 0 by which all can be joined; none where they grow beyond 256."""
    ready, changed = [0] * len(into), True
    while changed:
        changed = False
        for vertex, sources in enumerate(into):
            found = when_joined([ready[source] - interval for source in sources])
            if found > 256:
                return None
            if found > ready[vertex]:
                ready[vertex], changed = found, True
    return ready


def planned(shape: dict[str, Any], _: int) -> Any:
    into, interval = arcs_into(shape), 1
    while (ready := settled(into, interval)) is None:
        interval += 1
    nodes: list[Any] = [None] * len(into)
    at = list(ready)
    for vertex, sources in enumerate(into):
        heap = [(ready[source] - interval, order, (source, 1, 1)) for order, source in enumerate(sources)]
        heapq.heapify(heap)
        while len(heap) > 2:
            one, other = heapq.heappop(heap), heapq.heappop(heap)
            time = max(one[0], other[0]) + 1
            heapq.heappush(heap, (time, len(nodes) + len(sources), (len(nodes), 0, 0)))
            nodes.append((vertex, [one[2], other[2]]))
            at.append(time)
        nodes[vertex] = (vertex, [operand for _, _, operand in sorted(heap)])
    low = min(0, *at)
    return nodes, interval, [time - low for time in at], starts(shape)


def planned_ahead(shape: dict[str, Any], ahead: int) -> Any:
    into = arcs_into(shape)
    nodes: list[Any] = [None] * len(into)
    at, entries = [0] * len(into), {start: start for start in starts(shape)}

    def add(vertex: int, operands: list[Any], place: int | None = None) -> int:
        heap = [(at[o[0]] - o[1] // ahead, number, o) for number, o in enumerate(operands)]
        heapq.heapify(heap)
        while len(heap) > 2:
            pair = [heapq.heappop(heap)[2] for _ in range(2)]
            inner = add(vertex, pair)
            heapq.heappush(heap, (at[inner], len(operands) + inner, (inner, 0, 0)))
        if place is None:
            place = len(nodes)
            nodes.append(None)
            at.append(0)
        nodes[place] = (vertex, [operand for _, _, operand in sorted(heap)])
        at[place] = max((time for time, _, _ in heap), default=0) + (len(heap) == 2)
        return place

    placed: set[int] = set()
    while len(placed) < len(into):
        level = [v for v in range(len(into)) if v not in placed and set(into[v]) - {v} <= placed]
        for vertex in level:
            others = [(source, 1, 1) for source in into[vertex] if source != vertex]
            if len(others) == len(into[vertex]):
                add(vertex, others, vertex)
                continue
            entered = add(vertex, others)
            if vertex in entries:
                entries[vertex] = entered
            width = 1
            while width < ahead:
                entered = add(vertex, [(entered, width, width), (entered, 0, 0)])
                width *= 2
            nodes[vertex] = (vertex, [(vertex, ahead, ahead), (entered, 0, 0)])
            at[vertex] = at[entered] + 1
        placed |= set(level)
    return nodes, 1, at, [entries[start] for start in starts(shape)]


def reach(nodes: list[Any], entries: list[int], frames: int) -> list[list[bool]]:
    reached: list[list[bool]] = []
    for frame in range(frames):
        row = [frame == 0 and node in entries for node in range(len(nodes))]
        reached.append(row)
        changed = True
        while changed:
            changed = False
            for node, (_, operands) in enumerate(nodes):
                if not row[node] and any(frame >= o[1] and reached[frame - o[1]][o[0]] for o in operands):
                    row[node] = changed = True
    return reached

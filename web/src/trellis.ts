/** A public graph that tokens walk through, and which operations on it run together: a plan from sizes alone (wire.md, 11.1). */

/** To a state a frame later, to a junction within its frame. `keep`: the bits of what a token knows that it keeps. */
export type Arc = { source: number; target: number; keep: number };
/** `columns`: of the emissions, one a vertex; null for a junction. `starts`: where a token may be at frame 0. */
export type Trellis = { columns: (number | null)[]; arcs: Arc[]; starts: number[] };

/** The value of a node `delay` frames ago, plus the emissions of its vertex over `emits` frames from that frame on. */
export type Operand = { node: number; delay: number; emits: number; keep: number };
export type Node = { vertex: number; operands: Operand[] };
export type Join = { frame: number; node: number; left: Operand; right: Operand };
export type Pass = { frame: number; node: number; from: Operand };
export type Slot = { joins: Join[]; passes: Pass[] };
/** `reached`: for each frame, whether a token can be in a node. */
export type Plan = Timed & { trellis: Trellis; frames: number; ahead: number; reached: Uint8Array[] };

type Timed = { nodes: Node[]; interval: number; ready: number[]; entries: number[] };
type Keyed = { time: number; order: number; operand: Operand };

const LATEST = 256;
const LONGEST_INTERVAL = 64;
const ALL = 0xffffffff;

/** Raises an Error for a step of more operations, one after the other, than can be followed. */
export function planTrellis(trellis: Trellis, frames: number, ahead = 1): Plan {
  const timed = ahead === 1 ? planned(trellis) : plannedAhead(trellis, ahead);
  return { ...timed, trellis, frames, ahead, reached: reach(timed.nodes, timed.entries, frames) };
}

/** What runs when, slot after slot. */
export function* slotsOf({ nodes, interval, ready, frames, ahead, reached }: Plan): Generator<Slot> {
  const turns: number[][] = Array.from({ length: interval }, () => []); // the nodes of every so many slots
  ready.forEach((time, node) => turns[time % interval]!.push(node));
  const last = interval * Math.floor((frames - 1) / ahead) + ready.reduce((a, b) => Math.max(a, b));
  for (let slot = 0; slot <= last; slot++) {
    const [joins, passes]: [Join[], Pass[]] = [[], []];
    for (const node of turns[slot % interval]!) {
      const turn = (slot - ready[node]!) / interval;
      if (turn < 0) continue;
      for (let frame = turn * ahead; frame < Math.min(turn * ahead + ahead, frames); frame++) {
        if (!reached[frame]![node]) continue;
        const given = nodes[node]!.operands.filter((each) => frame >= each.delay && reached[frame - each.delay]![each.node]);
        if (given.length === 2) joins.push({ frame, node, left: given[0]!, right: given[1]! });
        else if (given.length === 1) passes.push({ frame, node, from: given[0]! });
      }
    }
    yield { joins, passes };
  }
}

/** The first frame at which a token can be in a vertex; null where it cannot, or not in all frames after it. */
export function firstIn(vertex: number, trellis: Trellis, frames: number): number | null {
  const nodes = operandsInto(trellis).map((operands, place) => ({ vertex: place, operands }));
  const there = reach(nodes, trellis.starts, frames).map((row) => row[vertex]!);
  const first = there.indexOf(1);
  return first < 0 || there.includes(0, first) ? null : first;
}

/** What arcs bring into every vertex, in the order of the arcs. */
function operandsInto({ columns, arcs }: Trellis): Operand[][] {
  const into: Operand[][] = columns.map(() => []);
  for (const { source, target, keep } of arcs) {
    into[target]!.push({ node: source, delay: Number(columns[target] !== null), emits: Number(columns[source] !== null), keep });
  }
  return into;
}

/** The one whose turn it is: of those given, in order, and of those joined from them, which come in order too. */
function taker<T>(given: T[], joined: T[], isBefore: (one: T, other: T) => boolean): () => T {
  let [ofGiven, ofJoined] = [0, 0];
  return () => {
    const takesGiven = ofJoined === joined.length || (ofGiven < given.length && !isBefore(joined[ofJoined]!, given[ofGiven]!));
    return takesGiven ? given[ofGiven++]! : joined[ofJoined++]!;
  };
}

/** The two smallest become the larger of them plus 1, until one is left. */
function whenJoined(times: number[]): number {
  const joined: number[] = [];
  const take = taker(times.sort((a, b) => a - b), joined, (one, other) => one < other);
  for (let left = times.length; left > 1; left--) joined.push(Math.max(take(), take()) + 1);
  return times.length ? take() : 0;
}

/** The two that are there first are joined, until two are left, in order. */
function untilTwo(given: Keyed[], join: (one: Operand, other: Operand, time: number) => Keyed): Keyed[] {
  const joined: Keyed[] = [];
  const take = taker(given.sort(byKey), joined, (one, other) => byKey(one, other) < 0);
  for (let left = given.length; left > 2; left--) {
    const [one, other] = [take(), take()];
    joined.push(join(one.operand, other.operand, Math.max(one.time, other.time) + 1));
  }
  return Array.from({ length: Math.min(given.length, 2) }, take);
}

/** The least times by which all can be joined; null where they grow beyond the latest. */
function settled(into: Operand[][], interval: number): number[] | null {
  const ready = new Array<number>(into.length).fill(0);
  const after: number[][] = into.map(() => []);
  into.forEach((operands, vertex) => operands.forEach(({ node }) => after[node]!.push(vertex)));
  for (let waiting = new Set(into.keys()); waiting.size; ) {
    const changed = new Set<number>();
    for (const vertex of waiting) {
      const found = whenJoined(into[vertex]!.map(({ node, delay }) => ready[node]! - interval * delay));
      if (found > LATEST) return null;
      if (found <= ready[vertex]!) continue;
      ready[vertex] = found;
      after[vertex]!.forEach((target) => changed.add(target));
    }
    waiting = changed;
  }
  return ready;
}

function byKey(one: Keyed, other: Keyed): number {
  return one.time - other.time || one.order - other.order;
}

function planned(trellis: Trellis): Timed {
  const into = operandsInto(trellis);
  let interval = 1;
  let ready = settled(into, interval);
  while (ready === null) {
    if (interval === LONGEST_INTERVAL) throw new Error(`a step of this trellis takes more than ${LONGEST_INTERVAL} operations in a row`);
    ready = settled(into, ++interval);
  }
  const nodes: Node[] = new Array(into.length);
  const at = [...ready];
  into.forEach((operands, vertex) => {
    const keyed = operands.map((operand, order) => ({ time: ready[operand.node]! - interval * operand.delay, order, operand }));
    const both = untilTwo(keyed, (one, other, time) => {
      const node = nodes.push({ vertex, operands: [one, other] }) - 1;
      at.push(time);
      return { time, order: node + operands.length, operand: inner(node, 0) };
    });
    nodes[vertex] = { vertex, operands: both.map((each) => each.operand) };
  });
  const low = at.reduce((a, b) => Math.min(a, b), 0);
  return { nodes, interval, ready: at.map((time) => time - low), entries: trellis.starts };
}

/** States that lead to themselves in several frames at once, whatever enters them joined before. */
function plannedAhead(trellis: Trellis, ahead: number): Timed {
  const into = operandsInto(trellis);
  const nodes: Node[] = new Array(into.length);
  const at = new Array<number>(into.length).fill(0);
  const entries = new Map(trellis.starts.map((start) => [start, start]));

  const add = (vertex: number, operands: Operand[], given?: number): number => {
    const keyed = operands.map((operand, order) => ({ time: at[operand.node]! - Math.floor(operand.delay / ahead), order, operand }));
    const both = untilTwo(keyed, (one, other) => {
      const node = add(vertex, [one, other]);
      return { time: at[node]!, order: operands.length + node, operand: inner(node, 0) };
    });
    const place = given ?? nodes.length;
    nodes[place] = { vertex, operands: both.map((each) => each.operand) };
    at[place] = (both.length ? Math.max(...both.map((each) => each.time)) : 0) + Number(both.length === 2);
    return place;
  };

  const placed = new Set<number>();
  while (placed.size < into.length) {
    const isReady = (operands: Operand[], v: number) => !placed.has(v) && operands.every(({ node }) => node === v || placed.has(node));
    const level = [...into.keys()].filter((v) => isReady(into[v]!, v));
    for (const vertex of level) {
      const others = into[vertex]!.filter(({ node }) => node !== vertex);
      if (others.length === into[vertex]!.length) {
        add(vertex, others, vertex);
        continue;
      }
      let entered = add(vertex, others);
      if (entries.has(vertex)) entries.set(vertex, entered);
      for (let width = 1; width < ahead; width *= 2) entered = add(vertex, [inner(entered, width), inner(entered, 0)]);
      nodes[vertex] = { vertex, operands: [inner(vertex, ahead), inner(entered, 0)] };
      at[vertex] = at[entered]! + 1;
    }
    level.forEach((vertex) => placed.add(vertex));
  }
  const first = at.reduce((one, other) => Math.min(one, other), 0); // before the first slot of a frame nothing is done
  return { nodes, interval: 1, ready: at.map((time) => time - first), entries: trellis.starts.map((start) => entries.get(start)!) };
}

/** A node within a vertex, so many frames ago, with what its state emitted since. */
function inner(node: number, frames: number): Operand {
  return { node, delay: frames, emits: frames, keep: ALL };
}

/** Whether a token can be in a node, at each frame. */
function reach(nodes: Node[], entries: number[], frames: number): Uint8Array[] {
  const reached: Uint8Array[] = [];
  const longest = nodes.reduce((most, { operands }) => operands.reduce((far, { delay }) => Math.max(far, delay), most), 1);
  for (let frame = 0; frame < frames; frame++) {
    const row = new Uint8Array(nodes.length);
    reached.push(row);
    if (frame === 0) entries.forEach((entry) => (row[entry] = 1));
    for (let changed = true; changed; ) {
      changed = false;
      nodes.forEach(({ operands }, node) => {
        if (!row[node] && operands.some((each) => frame >= each.delay && reached[frame - each.delay]![each.node])) {
          row[node] = 1;
          changed = true;
        }
      });
    }
    const before = reached.slice(-1 - longest, -1);
    if (frame > longest && before.every((other) => other.every((there, node) => there === row[node]))) {
      while (reached.length < frames) reached.push(row);
      break;
    }
  }
  return reached;
}

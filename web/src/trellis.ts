/** Which operations of the recursion run together: a plan from public sizes alone (wire.md, section 11.1). */

import type { Shape } from "./shape.ts";

/** The value of a node `delay` frames ago, plus the emissions of its vertex over `emits` frames from that frame on. */
export type Operand = { node: number; delay: number; emits: number };
export type Node = { vertex: number; operands: Operand[] };
export type Join = { frame: number; node: number; left: Operand; right: Operand };
export type Pass = { frame: number; node: number; from: Operand };
export type Slot = { joins: Join[]; passes: Pass[] };
export type Plan = { nodes: Node[]; entries: number[]; slots: Slot[]; reached: boolean[][] };

type Timed = { nodes: Node[]; interval: number; ready: number[]; entries: number[] };
type Keyed = { time: number; order: number; operand: Operand };

const LATEST = 256;

/** Frames a step: 8 for the order `ahead`; for `frames` 2 where that pays. */
export function framesAStep(shape: Shape, utterances: number, order: "frames" | "ahead"): number {
  if (order === "ahead") return 8;
  const few = utterances * shape.words * shape.states <= 200 && shape.frames > 64;
  return few && shape.operation === "viterbi" && shape.moves[0] === 0 ? 2 : 1;
}

export function planTrellis(shape: Shape, ahead: number): Plan {
  const { nodes, interval, ready, entries } = ahead === 1 ? planned(shape) : plannedAhead(shape, ahead);
  const reached = reach(nodes, entries, shape.frames);
  const slots: Slot[] = [];
  const last = interval * Math.floor((shape.frames - 1) / ahead) + ready.reduce((a, b) => Math.max(a, b));
  for (let slot = 0; slot <= last; slot++) {
    const [joins, passes]: [Join[], Pass[]] = [[], []];
    nodes.forEach(({ operands }, node) => {
      const since = slot - ready[node]!;
      if (since < 0 || since % interval) return;
      const turn = since / interval;
      for (let frame = turn * ahead; frame < Math.min(turn * ahead + ahead, shape.frames); frame++) {
        if (!reached[frame]![node]) continue;
        const given = operands.filter((each) => frame >= each.delay && reached[frame - each.delay]![each.node]);
        if (given.length === 2) joins.push({ frame, node, left: given[0]!, right: given[1]! });
        else if (given.length === 1) passes.push({ frame, node, from: given[0]! });
      }
    });
    slots.push({ joins, passes });
  }
  return { nodes, entries, slots, reached };
}

/** The sources of every vertex, in the order of sources and then of moves. */
function arcsInto(shape: Shape): number[][] {
  const into: number[][] = Array.from({ length: shape.words * shape.states }, () => []);
  for (let word = 0; word < shape.words; word++) {
    for (let source = 0; source < shape.states; source++) {
      for (const move of shape.moves) {
        const target = source + move;
        if (target >= 0 && target < shape.states) into[word * shape.states + target]!.push(word * shape.states + source);
      }
    }
  }
  return into;
}

function startsOf(shape: Shape): number[] {
  return Array.from({ length: shape.words }, (_, word) => shape.starts.map((state) => word * shape.states + state)).flat();
}

/** The two smallest become the larger of them plus 1, until one is left. */
function whenJoined(times: number[]): number {
  while (times.length > 1) {
    times.sort((a, b) => a - b);
    times.splice(0, 2, Math.max(times[0]!, times[1]!) + 1);
  }
  return times[0] ?? 0;
}

/** The least times by which all can be joined; null where they grow beyond the latest. */
function settled(into: number[][], interval: number): number[] | null {
  const ready = new Array<number>(into.length).fill(0);
  for (let changed = true; changed; ) {
    changed = false;
    for (let vertex = 0; vertex < into.length; vertex++) {
      const found = whenJoined(into[vertex]!.map((source) => ready[source]! - interval));
      if (found > LATEST) return null;
      if (found > ready[vertex]!) {
        ready[vertex] = found;
        changed = true;
      }
    }
  }
  return ready;
}

function byKey(one: Keyed, other: Keyed): number {
  return one.time - other.time || one.order - other.order;
}

function planned(shape: Shape): Timed {
  const into = arcsInto(shape);
  let interval = 1;
  let ready = settled(into, interval);
  while (ready === null) ready = settled(into, ++interval);
  const nodes: Node[] = new Array(into.length);
  const at = [...ready];
  into.forEach((sources, vertex) => {
    const heap: Keyed[] = sources.map((source, order) => ({
      time: ready[source]! - interval, order, operand: { node: source, delay: 1, emits: 1 },
    }));
    while (heap.sort(byKey).length > 2) {
      const [one, other] = heap.splice(0, 2) as [Keyed, Keyed];
      const time = Math.max(one.time, other.time) + 1;
      heap.push({ time, order: nodes.length + sources.length, operand: { node: nodes.length, delay: 0, emits: 0 } });
      nodes.push({ vertex, operands: [one.operand, other.operand] });
      at.push(time);
    }
    nodes[vertex] = { vertex, operands: heap.map((each) => each.operand) };
  });
  const low = at.reduce((a, b) => Math.min(a, b), 0);
  return { nodes, interval, ready: at.map((time) => time - low), entries: startsOf(shape) };
}

function plannedAhead(shape: Shape, ahead: number): Timed {
  const into = arcsInto(shape);
  const nodes: Node[] = new Array(into.length);
  const at = new Array<number>(into.length).fill(0);
  const entries = new Map(startsOf(shape).map((start) => [start, start]));

  const add = (vertex: number, operands: Operand[], given?: number): number => {
    const heap: Keyed[] = operands.map((operand, order) => ({
      time: at[operand.node]! - Math.floor(operand.delay / ahead), order, operand,
    }));
    while (heap.sort(byKey).length > 2) {
      const inner = add(vertex, heap.splice(0, 2).map((each) => each.operand));
      heap.push({ time: at[inner]!, order: operands.length + inner, operand: { node: inner, delay: 0, emits: 0 } });
    }
    const place = given ?? nodes.length;
    nodes[place] = { vertex, operands: heap.map((each) => each.operand) };
    at[place] = (heap.length ? Math.max(...heap.map((each) => each.time)) : 0) + Number(heap.length === 2);
    return place;
  };

  const placed = new Set<number>();
  while (placed.size < into.length) {
    const level = into.map((_, v) => v).filter((v) => !placed.has(v) && into[v]!.every((source) => source === v || placed.has(source)));
    for (const vertex of level) {
      const others = into[vertex]!.filter((source) => source !== vertex);
      const operands = others.map((node) => ({ node, delay: 1, emits: 1 }));
      if (others.length === into[vertex]!.length) {
        add(vertex, operands, vertex);
        continue;
      }
      let entered = add(vertex, operands);
      if (entries.has(vertex)) entries.set(vertex, entered);
      for (let width = 1; width < ahead; width *= 2) {
        entered = add(vertex, [{ node: entered, delay: width, emits: width }, { node: entered, delay: 0, emits: 0 }]);
      }
      nodes[vertex] = { vertex, operands: [{ node: vertex, delay: ahead, emits: ahead }, { node: entered, delay: 0, emits: 0 }] };
      at[vertex] = at[entered]! + 1;
    }
    level.forEach((vertex) => placed.add(vertex));
  }
  return { nodes, interval: 1, ready: at, entries: startsOf(shape).map((start) => entries.get(start)!) };
}

/** Whether a path can be in a node at a frame. */
function reach(nodes: Node[], entries: number[], frames: number): boolean[][] {
  const reached: boolean[][] = [];
  const begins = new Set(entries);
  for (let frame = 0; frame < frames; frame++) {
    const row = nodes.map((_, node) => frame === 0 && begins.has(node));
    reached.push(row);
    for (let changed = true; changed; ) {
      changed = false;
      nodes.forEach(({ operands }, node) => {
        if (!row[node] && operands.some((each) => frame >= each.delay && reached[frame - each.delay]![each.node])) {
          row[node] = changed = true;
        }
      });
    }
  }
  return reached;
}

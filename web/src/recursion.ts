/** Tokens that walk through a trellis, on shares: slot after slot, each one batch of operations (wire.md, section 11.1). */

import { mask } from "./packing.ts";
import { type Operand, type Plan, slotsOf } from "./trellis.ts";

/** Our shares of tokens: of their scores, and by exclusive or of what they know. */
export type Tokens = { scores: Uint32Array; fields: Uint32Array };
/** The best of every two tokens, or what else becomes of them. */
export type Joining = (left: Tokens, right: Tokens) => Promise<Tokens>;

/**
 * Tokens of every frame and node, `(frames, nodes, lanes)`; scores are without the emission of their own frame, and
 * nothing stands where no token can be. `emissions`: `(frames, columns, lanes)`, mod 2^k. The weights of arcs, and what
 * they let a token know, are the server's share alone.
 */
export async function follow(plan: Plan, emissions: Uint32Array, lanes: number, k: number, join: Joining): Promise<Tokens> {
  const { nodes, entries, frames, trellis } = plan;
  const [count, columns, ring] = [nodes.length, emissions.length / frames / lanes, mask(k)];
  const all = blank(frames * count * lanes);
  const known = new Uint8Array(frames * count);
  for (const entry of entries) known[entry] = 1;
  const emitted = nodes.map(({ vertex }) => trellis.columns[vertex] ?? 0);

  const take = (frame: number, { node, delay, emits, keep }: Operand, lane: number, out: Tokens, at: number): void => {
    const from = ((frame - delay) * count + node) * lanes + lane;
    let sum = all.scores[from]!;
    for (let t = frame - delay; t < frame - delay + emits; t++) sum += emissions[(t * columns + emitted[node]!) * lanes + lane]!;
    out.scores[at] = sum & ring;
    out.fields[at] = all.fields[from]! & keep;
  };

  for (const { joins, passes } of slotsOf(plan)) {
    if (joins.length) {
      const [left, right] = [blank(joins.length * lanes), blank(joins.length * lanes)];
      joins.forEach((each, n) => {
        for (let lane = 0; lane < lanes; lane++) {
          take(each.frame, each.left, lane, left, n * lanes + lane);
          take(each.frame, each.right, lane, right, n * lanes + lane);
        }
      });
      const both = await join(left, right);
      joins.forEach(({ frame, node }, n) => {
        const at = (frame * count + node) * lanes;
        all.scores.set(both.scores.subarray(n * lanes, (n + 1) * lanes), at);
        all.fields.set(both.fields.subarray(n * lanes, (n + 1) * lanes), at);
        known[frame * count + node] = 1;
      });
    }
    for (let waiting = passes; waiting.length; ) {
      const later = waiting.filter(({ frame, node, from }) => {
        if (!known[(frame - from.delay) * count + from.node]) return true;
        for (let lane = 0; lane < lanes; lane++) take(frame, from, lane, all, (frame * count + node) * lanes + lane);
        known[frame * count + node] = 1;
        return false;
      });
      if (later.length === waiting.length) throw new Error("the plan of the trellis does not end");
      waiting = later;
    }
  }
  return all;
}

function blank(count: number): Tokens {
  return { scores: new Uint32Array(count), fields: new Uint32Array(count) };
}

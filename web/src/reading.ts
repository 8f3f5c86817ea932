/** JSON of a server, read strictly: exactly the fields that are known, each within its bounds. */

import { ProtocolError } from "./errors.ts";

export function refused(why: string): ProtocolError {
  return new ProtocolError(`the server's description cannot be used: ${why}`);
}

export function object(plain: unknown, what: string, fields: string[]): { [key: string]: unknown } {
  if (typeof plain !== "object" || plain === null || Array.isArray(plain)) throw refused(`${what} is no object`);
  const names = Object.keys(plain);
  const [missing] = fields.filter((field) => !names.includes(field));
  if (missing !== undefined) throw refused(`${what} lacks ${missing}`);
  const [more] = names.filter((name) => !fields.includes(name));
  if (more !== undefined) throw refused(`${what} has ${JSON.stringify(more).slice(0, 80)}, which is not known`);
  return plain as { [key: string]: unknown };
}

export function list(plain: unknown, what: string, most: number): unknown[] {
  if (!Array.isArray(plain) || plain.length > most) throw refused(`${what} is a list of up to ${most}`);
  return plain;
}

export function whole(plain: unknown, what: string, least: number, most: number): number {
  if (typeof plain !== "number" || !Number.isInteger(plain) || plain < least || plain > most) {
    throw refused(`${what} must lie in ${least}..${most}, got ${shown(plain)}`);
  }
  return plain;
}

export function real(plain: unknown, what: string, least: number, most: number): number {
  if (typeof plain !== "number" || !(plain >= least && plain <= most)) {
    throw refused(`${what} must lie in ${least}..${most}, got ${shown(plain)}`);
  }
  return plain;
}

export function text(plain: unknown, what: string, most: number): string {
  if (typeof plain !== "string" || plain.length > most) throw refused(`${what} is a text of up to ${most} letters`);
  return plain;
}

export function truth(plain: unknown, what: string): boolean {
  if (typeof plain !== "boolean") throw refused(`${what} is true or false, got ${shown(plain)}`);
  return plain;
}

export function oneOf<T extends string | number>(plain: unknown, what: string, known: readonly T[]): T {
  const found = known.find((each) => each === plain);
  if (found === undefined) throw refused(`${what} is one of ${known.join(", ")}, got ${shown(plain)}`);
  return found;
}

/** Whole numbers in ascending order, at least one. */
export function ascending(plain: unknown, what: string, least: number, most: number): number[] {
  const found = list(plain, what, 1024).map((each) => whole(each, what, least, most));
  if (!found.length || found.some((each, i) => i > 0 && each <= found[i - 1]!)) throw refused(`${what} are ascending`);
  return found;
}

function shown(plain: unknown): string {
  return (JSON.stringify(plain) ?? "nothing").slice(0, 80);
}

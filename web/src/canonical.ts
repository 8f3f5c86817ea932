/** JSON in the one form that both parties hash: sorted keys, no spaces, ASCII, numbers as Python writes them. */

/** A number that is a double even where it is whole: `8.0`, not `8`. */
export class Double {
  constructor(readonly value: number) {}
}

export type Plain = null | boolean | number | string | Double | Plain[] | { [key: string]: Plain };

export function canonical(value: Plain): string {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return spelled(value);
  if (typeof value === "number") return Number.isInteger(value) ? BigInt(value).toString() : asDouble(value);
  if (value instanceof Double) return asDouble(value.value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const keys = Object.keys(value).sort(byCodePoint);
  return `{${keys.map((key) => `${spelled(key)}:${canonical(value[key]!)}`).join(",")}}`;
}

/** The shortest decimal that reads back as the same double, in Python's spelling. */
export function asDouble(value: number): string {
  if (!Number.isFinite(value)) throw new RangeError(`${value} is no number that can be written`);
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [mantissa, exponent] = value.toExponential().split("e") as [string, string];
  const power = Number(exponent);
  if (power >= 16 || power < -4) {
    return `${mantissa}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }
  const plain = power < -6 ? value.toFixed(-power + mantissa.length) : String(value);
  return plain.includes(".") ? plain : `${plain}.0`;
}

function spelled(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (letter) =>
    letter === "\u007f" ? letter : `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function byCodePoint(one: string, other: string): number {
  const left = [...one].map((letter) => letter.codePointAt(0)!);
  const right = [...other].map((letter) => letter.codePointAt(0)!);
  for (let i = 0; i < Math.min(left.length, right.length); i++) {
    if (left[i] !== right[i]) return left[i]! - right[i]!;
  }
  return left.length - right.length;
}

/** Secrets: from the system's generator alone. A test may put bytes that are written down in its place. */

export type Random = (bytes: Uint8Array) => void;

const AT_ONCE = 65536; // what getRandomValues fills in one call

/** Fill with bytes of `crypto.getRandomValues`. */
export const systemRandom: Random = (bytes) => {
  for (let at = 0; at < bytes.length; at += AT_ONCE) {
    crypto.getRandomValues(bytes.subarray(at, at + AT_ONCE) as Uint8Array<ArrayBuffer>);
  }
};

export function drawn(random: Random, count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  random(bytes);
  return bytes;
}

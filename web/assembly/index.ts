export { beginHash, hashBlocks } from "./sha256";
export { begin, forward, inverse, makeSecret, makeErrors, makeKey, encryptZero, addMessage, openReply } from "./ring";
export { fromWord, toWord } from "./ring";
export { expandSeed } from "./blake";
export { encryptEight, expandKeys, zeroUnder, streams, hashNarrow, hashWide } from "./aes";
export { transpose, choiceColumns, codedColumns, addChosen, columnHashes } from "./bits";
export { beginPoints, pointTimes, basePointTimes, addPoints, isValidPoint, fromUniform } from "./points";

/** Where memory begins that is the caller's. */
export function heap(): usize {
  return __heap_base;
}

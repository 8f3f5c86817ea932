/** Which word was said, from inside a page: `connect`, `prepare`, `recognize`. */

export type { WebSocketLike } from "./carrier.ts";
export { Client, connect, type Options, type Word } from "./client.ts";
export { AudioError, BudgetSpentError, ProtocolError } from "./errors.ts";
export type { Offer } from "./offer.ts";
export type { Shape } from "./shape.ts";

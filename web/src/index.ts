/** What was said, from inside a page: `connect`, `prepare`, `recognize`, `transcribe`; and who says so, `connectSpeakers`. */

export type { Spent } from "./asking.ts";
export type { WebSocketLike } from "./carrier.ts";
export { Client, connect, type Options, type Sentence, type Word } from "./client.ts";
export type { DoorOptions, Where } from "./door.ts";
export { AudioError, BudgetSpentError, NotNowError, ProtocolError } from "./errors.ts";
export type { HeadOffer } from "./head_terms.ts";
export { connectHead, HeadClient, type HeadOptions } from "./heads.ts";
export type { Offer } from "./offer.ts";
export type { TransportLike, TransportMaker } from "./pinned.ts";
export type { Spoken } from "./sentence_question.ts";
export type { SentenceShape } from "./sentence_shape.ts";
export type { SentenceOffer } from "./sentence_terms.ts";
export type { Shape } from "./shape.ts";
export type { SpeakerOffer } from "./speaker_terms.ts";
export { connectSpeakers, type Decision, SpeakerClient } from "./speakers.ts";

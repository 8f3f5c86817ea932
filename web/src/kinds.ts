/** Kinds of messages (docs/reference/wire.md, section 5). */

export const HELLO = 0;
export const LATTICE_KEY = 1;
export const QUERY = 2;
export const REPLY = 3;
export const REQUEST = 6;
export const READY = 7;
export const BASE_POINT = 201;
export const BASE_REPLY = 202;
export const RESUME = 203;
export const COLUMNS = 204;
export const CODE_COLUMNS = 205;
export const BASE_COLUMNS = 206;
export const ASK = 208;
export const TABLES = 209;
export const PRODUCT = 210;
export const OPEN = 211;
export const FLIGHT = 215;
export const ABORT = 255;

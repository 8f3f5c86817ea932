/** What can go wrong, in words for people. */

/** The server is gone, or does not keep to the protocol: the session is over. */
export class ProtocolError extends Error {
  override name = "ProtocolError";
}

/** Sound that cannot be used: nothing was sent, or all that would have been in any case. */
export class AudioError extends Error {
  override name = "AudioError";
}

/** The server cannot count questions at the moment, and so answers none: nothing was asked, and nothing spent. */
export class NotNowError extends Error {
  override name = "NotNowError";

  constructor() {
    super("the server cannot count questions at the moment, and answers none that it cannot count: try again in a while");
  }
}

/** The server answers no more queries of this client: a defense of the model, not a fault of the voice. */
export class BudgetSpentError extends Error {
  override name = "BudgetSpentError";
}

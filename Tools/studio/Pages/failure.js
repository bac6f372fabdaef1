// The failure of a request, as the pages show it.

/** A request that failed: `code` as in the server's answer, `gone` if no server answers. */
export class SourceFailure extends Error {
  constructor(code, message, remedy = null, details = {}) {
    super(message);
    this.code = code;
    this.remedy = remedy;
    this.details = details;
  }
}

/** True for a request that the page itself cancelled, which is no failure. */
export function isCancelled(error) {
  return error instanceof DOMException && error.name === 'AbortError';
}

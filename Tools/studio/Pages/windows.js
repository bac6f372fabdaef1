// Loads the rows of a long list in windows, as the reader scrolls, and keeps the recent ones.
import { isCancelled } from './failure.js';

const windowSize = 200;
const maximumWindows = 40;

/** Rows of a list of any length. `load(offset, limit, signal)` answers `{ total, rows, … }`. */
export class RowWindows {
  #load;
  #onChange;
  #onFailure;
  #windows = new Map();
  #requests = new Map();
  #wanted = [0, 0];

  /** The number of rows, as the last answer says. */
  total = 0;

  /** The last answer. */
  answer = null;

  constructor(load, onChange, onFailure) {
    this.#load = load;
    this.#onChange = onChange;
    this.#onFailure = onFailure;
  }

  /** Loads the first window; the rows can be shown after that. */
  async open() {
    await this.#request(0);
  }

  /** The row at an index; null until it is loaded. */
  row(index) {
    return this.#windows.get(Math.floor(index / windowSize))?.rows[index % windowSize] ?? null;
  }

  /** Loads the windows of the rows that are on the screen, and cancels requests for all others. */
  want(first, last) {
    this.#wanted = [Math.floor(first / windowSize), Math.floor(Math.max(first, last) / windowSize)];
    const [from, to] = this.#wanted;
    for (const [number, request] of this.#requests) {
      if (number < from || number > to) request.abort();
    }
    for (let number = from; number <= to; number += 1) {
      if (number * windowSize < this.total && this.#isOutdated(number) && !this.#requests.has(number)) {
        this.#request(number).catch((error) => { if (!isCancelled(error)) this.#onFailure(error); });
      }
    }
  }

  /** Loads anew what is on the screen; its present rows stay until then. Other rows are forgotten. */
  async refresh() {
    const [from, to] = this.#wanted;
    for (const [number, entry] of this.#windows) {
      if (number < from || number > to) this.#windows.delete(number);
      else entry.outdated = true;
    }
    const numbers = Array.from({ length: to - from + 1 }, (_, index) => from + index);
    await Promise.all(numbers.filter((number) => !this.#requests.has(number)).map((number) => this.#request(number)));
  }

  /** Cancels all requests. */
  close() {
    for (const request of this.#requests.values()) request.abort();
  }

  #isOutdated(number) {
    const entry = this.#windows.get(number);
    if (!entry || entry.outdated) return true;
    // A search that is still running answers a part of a window.
    return entry.rows.length < Math.min(windowSize, this.total - number * windowSize);
  }

  async #request(number) {
    const request = new AbortController();
    this.#requests.set(number, request);
    try {
      const answer = await this.#load(number * windowSize, windowSize, request.signal);
      // Until a search has ended, its answers have a part of the rows: those that are shown stay.
      const known = answer.complete === false ? this.#windows.get(number)?.rows ?? [] : [];
      this.answer = answer;
      this.total = answer.complete === false ? Math.max(this.total, answer.total) : answer.total;
      this.#windows.delete(number);
      this.#windows.set(number, { rows: known.length > answer.rows.length ? known : answer.rows, outdated: false });
      this.#dropOldest();
      this.#onChange(this);
    } finally {
      if (this.#requests.get(number) === request) this.#requests.delete(number);
    }
  }

  #dropOldest() {
    for (const number of this.#windows.keys()) {
      if (this.#windows.size <= maximumWindows) return;
      if (number < this.#wanted[0] || number > this.#wanted[1]) this.#windows.delete(number);
    }
  }
}

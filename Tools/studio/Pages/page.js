// A tab that shows one answer as a page of sections: what the Outbox and Files tabs have in common.
import { element, setChildren } from './dom.js';
import { isCancelled } from './failure.js';

/** A tab of sections. A subclass has `address()`, `load(signal)` and `sections()`. */
export class PageTab {
  #request = null;
  #isOutdated = false;

  /** The last answer; null until there is one. */
  answer = null;

  /** The URL's parameters. */
  parameters = new URLSearchParams();

  constructor(studio, title, className) {
    this.studio = studio;
    this.body = element('div', {}, element('p', { class: 'empty', role: 'status' }, 'reading…'));
    this.element = element('div', { class: `tab ${className}` }, element('h1', { class: 'visually-hidden' }, title), this.body);
  }

  /** Shows what the URL's parameters select. */
  async show(parameters) {
    this.parameters = parameters;
    if (this.answer !== null) this.fill();
    else if (this.#request === null) await this.refresh();
  }

  /** Loads anew what is shown, because the log has changed. */
  async refresh() {
    if (this.#request !== null) {
      // An answer that takes longer than the log's next change is shown nevertheless, and asked for again.
      this.#isOutdated = true;
      return;
    }
    const request = new AbortController();
    this.#request = request;
    this.#isOutdated = false;
    try {
      this.answer = await this.load(request.signal);
      this.fill();
    } catch (error) {
      if (isCancelled(error)) return;
      if (this.answer === null) setChildren(this.body, element('p', { class: 'failure' }, error.message));
      this.studio.reportFailure(error);
    } finally {
      if (this.#request === request) this.#request = null;
    }
    if (this.#isOutdated) await this.refresh();
  }

  /** Draws the sections; the reader's place stays. */
  fill() {
    const top = this.element.scrollTop;
    setChildren(this.body, this.sections());
    this.element.scrollTop = top;
  }

  /** Cancels what is under way, because another tab is shown. */
  hide() {
    this.#request?.abort();
    this.#request = null;
  }

  /** Moves the focus to the first table. */
  search() {
    this.body.querySelector('.table-holder')?.focus();
  }

  /** A page has no active row. */
  step() {}

  /** Closes nothing. */
  close() {
    return false;
  }
}

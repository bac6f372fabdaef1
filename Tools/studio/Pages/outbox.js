// The Outbox tab: what waits for the server and why, the verdicts, and the decisions of the reader.
import { announce, button, content, element, noteBlock, noteLine, noteText, section } from './dom.js';
import { PageTab } from './page.js';
import { linePlot } from './plot.js';
import { statusMark, statusOfEntry } from './status.js';
import { confirmed, table } from './table.js';
import { countOf, formatBytes, formatCount, formatDuration, formatRelative, formatTime } from './text.js';

const shownVerdicts = 5;
const shownDependents = 20;
const outcomeNames = ['applied', 'duplicate', 'retry', 'parked', 'conflict'];

/** The Outbox tab. */
export class Outbox extends PageTab {
  constructor(studio) {
    super(studio, 'Outbox', 'outbox');
  }

  /** The address of the outbox as JSON. */
  address() {
    return this.studio.source.address('outbox');
  }

  /** Loads the outbox. */
  load(signal) {
    return this.studio.source.outbox(signal);
  }

  /** The sections of the page. */
  sections() {
    const { total, batches, lag, complete } = this.answer;
    return [
      complete ? '' : element('p', { class: 'note', role: 'status' }, 'the log is still being read; the numbers grow'),
      this.#counts(),
      total === 0 ? element('p', { class: 'empty' }, 'The outbox is empty: no event waits for the server.') : '',
      this.#due(),
      total === 0 ? '' : section('Lanes', this.#lanes()),
      total === 0 ? '' : section('Entries', this.#entries()),
      section('Lag', lag.length < 2 ? noteLine('there is too little to plot yet') : this.#lag()),
      section('Batches and verdicts', this.#batches(batches)),
    ];
  }

  #counts() {
    const { counts, total } = this.answer;
    const chosen = this.parameters.get('status');
    const tile = (status, label, number) => element('a', {
      class: 'tile', href: this.studio.linkWith({ status, lane: null }), 'aria-current': chosen === status ? 'true' : null,
    }, element('strong', {}, formatCount(number)), ' ', status === null ? label : statusMark(label));
    return element('div', { class: 'tiles', role: 'group', 'aria-label': 'entries by status' },
      tile(null, 'all', total),
      ['PENDING', 'FAILED', 'CONFLICT'].map((status) => tile(status, statusOfEntry(status), counts[status] ?? 0)));
  }

  /** The note about the entries that nothing holds. The log does not say whether a request is under way. */
  #due() {
    const { due } = this.answer;
    if (due === 0) return '';
    const entries = `${countOf(due, 'entry', 'entries')} ${due === 1 ? 'is' : 'are'} due: `;
    return noteLine(this.studio.log.isOpen
      ? `${entries}nothing holds them. The log was not closed: a writer may have it open, and they may be under way. The log records a sending with the server's answer.`
      : `${entries}nothing holds them. No writer has the log open: they are sent when an app opens it and reaches the server.`);
  }

  #lanes() {
    const { lanes } = this.answer;
    return table('lanes', [
      { label: 'lane', cell: ({ lane }) => element('a', { href: this.studio.linkWith({ lane, status: null }) }, content(lane)) },
      {
        label: 'state',
        cell: ({ status }) => [statusMark(statusOfEntry(status)), status === 'PENDING' ? '' : noteText(' held')],
      },
      { label: 'entries', className: 'number', cell: ({ entries }) => formatCount(entries) },
      { label: 'first', className: 'number', cell: ({ first }) => this.#eventLink(first) },
    ], lanes);
  }

  #eventLink(position) {
    return element('a', { href: this.studio.link('timeline', { event: position }) }, formatCount(position));
  }

  #entries() {
    const [status, lane] = [this.parameters.get('status'), this.parameters.get('lane')];
    const entries = this.answer.entries.filter((entry) => (status === null || entry.status === status) && (lane === null || entry.lane === lane));
    const columns = [
      { label: 'position', className: 'number', cell: (entry) => this.#eventLink(entry.position) },
      { label: 'action', cell: (entry) => content(entry.action) },
      { label: 'about', cell: (entry) => content(entry.entity) },
      { label: 'status', cell: (entry) => this.#entryStatus(entry) },
      { label: 'attempts', className: 'number', cell: (entry) => formatCount(entry.retryCount) },
      { label: 'last attempt', cell: (entry) => this.#moment(entry.lastAttemptAt) },
      { label: 'next attempt', cell: (entry) => this.#moment(entry.nextAttemptAt) },
      { label: 'reason', className: 'wrap', cell: (entry) => content(entry.message ?? '') },
      { label: 'bytes', className: 'number', cell: (entry) => formatBytes(entry.bytes) },
      { label: 'lane', cell: (entry) => content(entry.lane) },
    ];
    if (this.studio.log.writable) {
      columns.push({ label: 'decide', cell: (entry) => element('div', { class: 'actions' }, this.#decisions(entry)) });
    }
    const filter = lane === null ? '' : element('p', {}, 'only the lane ', content(lane), ' ',
      element('a', { href: this.studio.linkWith({ lane: null }) }, 'show all lanes'));
    const { entries: held, total } = this.answer;
    const isPartial = held.length < total;
    return [filter, table('entries of the outbox', columns, entries),
      isPartial ? noteLine(`the first ${formatCount(held.length)} of ${countOf(total, 'entry', 'entries')}`) : ''];
  }

  #entryStatus(entry) {
    const notes = [];
    if (entry.parking) notes.push(entry.parking);
    if (entry.status === 'PENDING' && !entry.heldBy) notes.push(this.studio.log.isOpen ? 'due, or under way' : 'due');
    if (entry.behind > 0) notes.push(`${formatCount(entry.behind)} wait after it`);
    const link = (label, id) => (id ? element('div', {}, element('a', { href: this.studio.link('timeline', { id }) }, label)) : '');
    return [statusMark(statusOfEntry(entry.status)), noteBlock(notes.join(', ')),
      link('its lane is held by another event', entry.heldBy), link('conflicts with an event', entry.conflictsWith)];
  }

  #moment(time) {
    if (time == null) return '–';
    return [formatRelative(time), noteBlock(formatTime(time, this.studio.zone))];
  }

  #lag() {
    return linePlot('own events that waited for the server', this.answer.lag,
      { name: 'time', value: (point) => new Date(point.time).getTime(), format: (point) => formatTime(point.time, this.studio.zone) },
      [{ name: 'events that wait', value: (point) => point.pending, format: formatCount },
        { name: 'age of the oldest', value: (point) => point.seconds, format: formatDuration }]);
  }

  #batches(batches) {
    if (batches.length === 0) return noteLine('no answer of a server is recorded');
    const number = (name) => ({ label: name, className: 'number', cell: (batch) => (batch[name] > 0 ? formatCount(batch[name]) : '–') });
    return table('batches and verdicts', [
      { label: 'record', className: 'number', cell: (batch) => this.#eventLink(batch.position) },
      { label: 'time', cell: (batch) => this.#moment(batch.time) },
      ...outcomeNames.map(number),
      { label: 'not applied', className: 'wrap', cell: (batch) => this.#verdicts(batch.entries) },
    ], batches);
  }

  #verdicts(entries) {
    const shown = entries.slice(0, shownVerdicts).map(({ position, outcome, code, detail, retryCount }) => element('div', {},
      this.#eventLink(position), ' ', outcome, ' ', content([code, detail].filter(Boolean).join(': ')),
      retryCount > 0 ? noteText(` attempt ${retryCount}`) : ''));
    const left = entries.length - shownVerdicts;
    return [shown, left > 0 ? noteBlock(`and ${formatCount(left)} more in the record`) : ''];
  }

  #decisions(entry) {
    const buttons = [];
    if (entry.status === 'FAILED') buttons.push(button('retry', () => this.#retry(entry)));
    if (entry.status === 'CONFLICT') {
      buttons.push(button('keep mine', () => this.#resolve(entry, 'mine')), button('keep theirs', () => this.#resolve(entry, 'theirs')));
    }
    if (entry.status !== 'PENDING' || entry.heldBy) buttons.push(button('discard', () => this.#discard(entry)));
    return buttons;
  }

  #about(entry) {
    return element('p', {}, content(entry.action), ' ', content(entry.entity), `, position ${formatCount(entry.position)}`);
  }

  async #retry(entry) {
    const meaning = 'It is sent once more, as if it had never been tried.';
    if (await confirmed('Retry this event?', 'retry', this.#about(entry), element('p', {}, meaning))) {
      await this.#decide('retry', { id: entry.id });
    }
  }

  async #resolve(entry, keep) {
    const outcome = keep === 'mine' ? 'recorded again, with new ids' : 'retracted';
    const meaning = `All unsettled events of the lane are ${outcome}.`;
    if (await confirmed(`Keep ${keep}?`, `keep ${keep}`, this.#about(entry), element('p', {}, meaning))) {
      await this.#decide('resolve', { id: entry.id, keep });
    }
  }

  async #discard(entry) {
    let dependents;
    try {
      ({ dependents } = await this.studio.source.dependents(entry.id));
    } catch (error) {
      this.studio.reportFailure(error);
      return;
    }
    const count = dependents.length;
    const label = count === 0 ? 'discard' : `discard ${countOf(count + 1, 'event')}`;
    const meaning = element('p', {}, 'It then counts as never recorded.');
    if (await confirmed('Discard this event?', label, this.#about(entry), meaning, this.#dependents(dependents))) {
      await this.#decide('discard', { id: entry.id, withDependents: count > 0 });
    }
  }

  #dependents(dependents) {
    if (dependents.length === 0) return element('p', {}, 'No other event depends on it.');
    const left = dependents.length - shownDependents;
    return [
      element('p', {}, 'Events of its lane that depend on it are retracted with it:'),
      element('ul', {}, dependents.slice(0, shownDependents).map(({ position, action, entity }) => element('li', {},
        formatCount(position), ' ', content(action), ' ', content(entity)))),
      left > 0 ? noteLine(`and ${formatCount(left)} more`) : '',
    ];
  }

  async #decide(decision, body) {
    try {
      const { done } = await this.studio.source.decide(decision, body);
      announce(done.map((row) => row.done).join(', '));
      await this.refresh();
    } catch (error) {
      this.studio.reportFailure(error);
    }
  }
}

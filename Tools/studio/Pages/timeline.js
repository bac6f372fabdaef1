// The Timeline tab: all events in a list of any length, filters, the histogram, and the selected event.
import { EventDetail } from './detail.js';
import { announce, button, content, element, setChildren } from './dom.js';
import { isCancelled } from './failure.js';
import { FilterBar } from './filter.js';
import { Histogram } from './histogram.js';
import { List } from './list.js';
import { filterOf, parseFragment } from './route.js';
import { statusMark } from './status.js';
import { countOf, formatCount, formatShare, formatTime, visibleText } from './text.js';
import { RowWindows } from './windows.js';

const histogramBuckets = 120;
const searchInterval = 100;
const histogramInterval = 300;
const openDelay = 120;
const wideScreen = matchMedia('(min-width: 110rem)');
// As in studio.css: the selected event covers the page.
const sheetScreen = matchMedia('(max-width: 60rem)');

/** The Timeline tab. */
export class Timeline {
  #studio;
  #parameters = new URLSearchParams();
  #query = null; // filter and order of the shown rows
  #windows = null;
  #opening = null;
  #histogramRequest = null;
  #histogramAnswer = null;
  #wasZoomed = false;
  #searchTimer = null;
  #openTimer = null;
  #shownLast = null; // the log's last position when the rows were loaded
  #heldLast = null; // newest first, away from the top: rows up to this position only
  #filterBar;
  #histogram;
  #list;
  #rows;
  #detail;
  #count = element('p', { class: 'count', role: 'status' });
  #newer = button('', () => this.#showNewest(), { class: 'newer', hidden: true });
  #empty = element('div', { class: 'empty', hidden: true });

  constructor(studio) {
    this.#studio = studio;
    const change = (changes, replace) => studio.change({ zoom: null, ...changes, event: null }, replace);
    this.#filterBar = new FilterBar(studio, change);
    this.#histogram = new Histogram({
      onSelect: (since, until) => change({ since, until }),
      onType: (type) => change({ type: [type] }),
      onZoom: (isZoomed) => studio.change({ zoom: isZoomed ? 1 : null }),
    });
    this.#list = new List({
      label: 'events', className: 'events',
      onOpen: (row) => this.#select(row.position),
      onScroll: () => this.#followOrHold(),
      isMarked: (row) => String(row.position) === this.#parameters.get('event'),
    });
    this.#detail = new EventDetail(studio, () => this.close());
    this.#setColumns();
    this.#rows = element('div', { class: 'rows' },
      element('div', { class: 'rows-head' }, this.#count, this.#newer), this.#empty, this.#list.element);
    this.element = element('div', { class: 'tab timeline' },
      element('h1', { class: 'visually-hidden' }, 'Timeline'),
      this.#filterBar.element, this.#histogram.element, element('div', { class: 'split' }, this.#rows, this.#detail.element));
    wideScreen.addEventListener('change', () => this.#setColumns());
    sheetScreen.addEventListener('change', () => this.#coverPage(!this.#detail.element.hidden));
  }

  /** The address of the shown rows as JSON. */
  address() {
    return this.#studio.source.address('events', [...this.#filter(), ['order', this.#order()]]);
  }

  /** Shows what the URL's parameters select. */
  async show(parameters) {
    const zoneChanged = parameters.get('time') !== this.#parameters.get('time');
    this.#parameters = parameters;
    this.#filterBar.show(parameters);
    if (zoneChanged) this.#setColumns();
    if (parameters.has('id') && await this.#goToID(parameters.get('id'))) return;
    const query = `${this.#filter()} ${this.#order()}`;
    const isNewQuery = query !== this.#query;
    if (isNewQuery || this.#isZoomed() !== this.#wasZoomed) this.#loadHistogram();
    else this.#drawHistogram();
    if (isNewQuery) {
      this.#query = query;
      this.#heldLast = null;
      this.#newer.hidden = true;
      await this.#openRows(true);
    } else {
      this.#list.update();
    }
    await this.#showSelected(isNewQuery, zoneChanged);
  }

  /** Loads anew what is shown, because the log has changed. */
  async refresh() {
    if (this.#windows === null) return;
    this.#loadHistogram();
    const windows = this.#windows;
    const totalBefore = windows.total;
    const isNewestFirst = this.#order() === 'newest';
    if (isNewestFirst && !this.#list.isAtTop && this.#studio.log.last !== this.#shownLast) this.#heldLast ??= this.#shownLast;
    try {
      await windows.refresh();
      if (windows !== this.#windows) return;
      if (this.#heldLast !== null) {
        await this.#offerNewer();
      } else {
        this.#shownLast = this.#studio.log.last;
        if (isNewestFirst) this.#list.shiftActive(windows.total - totalBefore);
      }
    } catch (error) {
      this.#failed(error);
    }
    await this.#detail.refresh();
  }

  /** Cancels what is under way, because another tab is shown. */
  hide() {
    clearTimeout(this.#searchTimer);
    this.#histogramRequest?.abort();
    this.#windows?.close();
    this.#query = null;
    this.#coverPage(false);
  }

  /** Closes the selected event; false if there is none. */
  close() {
    if (this.#detail.element.hidden) return false;
    this.#studio.change({ event: null });
    this.#list.element.focus();
    return true;
  }

  /** Moves the focus into the search field. */
  search() {
    this.#filterBar.focus();
  }

  /** Goes to the next (1) or previous (-1) event; if one is open, the other one is opened. */
  step(direction) {
    this.#list.activate(this.#list.active + direction);
    this.#list.element.focus();
    if (this.#detail.element.hidden) return;
    clearTimeout(this.#openTimer);
    this.#openTimer = setTimeout(() => this.#list.openActive(), openDelay);
  }

  /** Resolves a link that knows an event's id only; false if the log has no such event. */
  async #goToID(id) {
    try {
      this.#studio.change({ id: null, event: await this.#studio.source.find(id) }, true);
      return true;
    } catch (error) {
      this.#failed(error);
      return false;
    }
  }

  /** While the selected event covers the page, the keyboard cannot reach what is under it. */
  #coverPage(isOpen) {
    const isCovered = isOpen && sheetScreen.matches;
    for (const covered of [this.#filterBar.element, this.#histogram.element, this.#rows, document.querySelector('.page-header')]) {
      covered.inert = isCovered;
    }
  }

  #isZoomed() {
    return this.#parameters.has('zoom');
  }

  #filter() {
    return filterOf(this.#parameters);
  }

  #order() {
    return this.#parameters.get('order') === 'oldest' ? 'oldest' : 'newest';
  }

  #setColumns() {
    const time = (row) => formatTime(row.time, this.#studio.zone);
    this.#list.setColumns([
      { label: 'position', width: 5.25, className: 'number at-position', cell: (row) => formatCount(row.position) },
      { label: 'time', width: this.#studio.zone === 'local' ? 15 : 11.5, className: 'time at-time', cell: time },
      { label: 'type', width: 9, grow: 3, className: 'at-type', cell: (row) => content(row.type) },
      { label: 'subject', width: 6, grow: 3, className: 'at-subject', cell: (row) => content(row.subject ?? '') },
      ...(wideScreen.matches ? [{ label: 'lane', width: 8, grow: 3, cell: (row) => content(row.lane) }] : []),
      { label: 'status', width: 5.75, className: 'at-status', cell: (row) => statusMark(row.status) },
      { label: 'data', width: 8, grow: 8, className: 'code at-data', cell: (row) => content(row.data ?? '') },
    ]);
  }

  async #openRows(toTop) {
    const opened = new RowWindows((offset, limit, signal) => this.#load(offset, limit, signal),
      (windows) => this.#loaded(windows), (error) => this.#failed(error));
    this.#opening?.close();
    this.#opening = opened;
    this.#count.textContent = 'searching…';
    this.element.classList.add('waiting');
    try {
      await opened.open();
    } catch (error) {
      this.#failed(error);
      return;
    }
    if (this.#opening !== opened) return;
    this.#windows?.close();
    this.#windows = opened;
    this.#shownLast = this.#studio.log.last;
    this.#list.setRows(opened, toTop);
    this.#loaded(opened);
  }

  #load(offset, limit, signal) {
    const filter = this.#filter();
    // New events would shift the rows that are being read; a list that ends at a position does not move.
    if (this.#heldLast !== null && !filter.has('to')) filter.set('to', String(this.#heldLast));
    return this.#studio.source.events(filter, this.#order(), offset, limit, signal);
  }

  #loaded(windows) {
    if (windows !== this.#windows) return;
    this.element.classList.remove('waiting');
    this.#list.update();
    this.#showCount();
    clearTimeout(this.#searchTimer);
    if (!windows.answer.complete) {
      this.#searchTimer = setTimeout(() => windows.refresh().catch((error) => this.#failed(error)), searchInterval);
    }
  }

  #showCount() {
    const { total, complete, read } = this.#windows.answer;
    const all = this.#studio.log.events;
    const isFiltered = this.#filter().size > 0;
    const found = isFiltered ? `${formatCount(total)} of ${countOf(all, 'event')}` : countOf(total, 'event');
    this.#count.textContent = complete ? found : `searching… ${formatShare(read, all)} read, ${countOf(total, 'hit')} so far`;
    this.#empty.hidden = total > 0 || !complete;
    this.#list.element.hidden = !this.#empty.hidden;
    if (this.#empty.hidden) return;
    setChildren(this.#empty, this.#emptyMessage(isFiltered));
  }

  #emptyMessage(isFiltered) {
    const { problem, folder } = this.#studio.log;
    if (isFiltered) return [element('p', {}, 'No event passes the filters.'), button('clear all filters', () => this.#clearFilters())];
    if (problem != null && !['empty', 'noLog'].includes(problem.code)) return element('p', {}, 'No event can be shown.');
    return [element('p', {}, 'Events appear here when an app or an import records them:'),
      element('pre', {}, `logtool import ${visibleText(folder ?? 'LOG')} FILE.ndjson`)];
  }

  #clearFilters() {
    const changes = Object.fromEntries(Array.from(this.#filter().keys(), (name) => [name, null]));
    this.#studio.change(changes);
  }

  #failed(error) {
    if (isCancelled(error)) return;
    this.element.classList.remove('waiting');
    this.#count.textContent = error.message;
    this.#studio.reportFailure(error);
  }

  async #showSelected(isNewQuery, zoneChanged) {
    const position = Number(this.#parameters.get('event'));
    if (!Number.isInteger(position) || position < 1) {
      this.#detail.hide();
      this.#coverPage(false);
      return;
    }
    const shown = this.#detail.show(position);
    this.#coverPage(true);
    if (zoneChanged) this.#detail.refresh();
    const active = this.#windows?.row(this.#list.active);
    if (isNewQuery || active?.position !== position) await this.#reveal(position);
    await shown;
  }

  async #reveal(position) {
    try {
      const offset = await this.#studio.source.rank(this.#filter(), this.#order(), position);
      if (offset !== null) this.#list.reveal(offset);
    } catch (error) {
      this.#failed(error);
    }
  }

  #select(position) {
    const isOpen = !this.#detail.element.hidden;
    this.#studio.change({ event: position }, isOpen);
    if (sheetScreen.matches) this.#detail.focus();
  }

  async #loadHistogram() {
    this.#histogramRequest?.abort();
    const request = new AbortController();
    this.#histogramRequest = request;
    const filter = this.#filter();
    this.#wasZoomed = this.#isZoomed();
    if (!this.#wasZoomed) {
      // The selected time is shown within the whole, so that it can be moved.
      filter.delete('since');
      filter.delete('until');
    }
    try {
      this.#histogramAnswer = await this.#studio.source.histogram(filter, histogramBuckets, request.signal);
      this.#drawHistogram();
      if (this.#histogramAnswer.complete) return;
      setTimeout(() => {
        if (this.#histogramRequest === request) this.#loadHistogram();
      }, histogramInterval);
    } catch (error) {
      if (!isCancelled(error)) this.#failed(error);
    }
  }

  #drawHistogram() {
    if (this.#histogramAnswer === null) return;
    // The URL is ahead of the parameters while its event is on the way: a late answer must not undo a selection.
    const { parameters } = parseFragment(location.hash);
    const [since, until] = [parameters.get('since'), parameters.get('until')];
    this.#histogram.show(this.#histogramAnswer, { since, until, isZoomed: this.#isZoomed(), zone: this.#studio.zone });
  }

  #followOrHold() {
    if (this.#heldLast !== null && this.#list.isAtTop) this.#showNewest();
  }

  async #offerNewer() {
    const filter = this.#filter();
    if (filter.has('to')) return;
    filter.set('from', String(this.#heldLast + 1));
    const { total } = await this.#studio.source.events(filter, 'newest', 0, 1);
    this.#newer.hidden = total === 0;
    this.#newer.textContent = `${countOf(total, 'new event')}: show`;
    if (total > 0) announce(countOf(total, 'new event'));
  }

  #showNewest() {
    this.#heldLast = null;
    this.#newer.hidden = true;
    this.#openRows(true);
  }
}

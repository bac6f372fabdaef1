// The Views tab: what a view holds at any position of the log, and what has changed between two.
import { cellText, comparison } from './compare.js';
import { announce, button, content, debounce, element, noteLine, noteText, oneAtATime, setChildren } from './dom.js';
import { isCancelled } from './failure.js';
import { jsonView } from './json.js';
import { List } from './list.js';
import { PositionSlider } from './slider.js';
import { countOf, formatBytes, formatCount } from './text.js';
import { RowWindows } from './windows.js';

const markBuckets = 300;
const addressDelay = 250;
const changesPerRequest = 20;

/** The Views tab. */
export class Views {
  #studio;
  #parameters = new URLSearchParams();
  #views = [];
  #shown = null; // the query of the shown rows
  #marksOf = null;
  #windows = null;
  #opening = null;
  #comparing = null; // the request of the comparison
  #compared = null; // its query
  #comparedAnswer = null;
  #columns = []; // names
  #slider;
  #names = element('nav', { class: 'view-names', 'aria-label': 'views' });
  #positionField;
  #text;
  #comparePosition;
  #follow;
  #eventLink = element('a', { class: 'button' }, 'event at this position');
  #count = element('p', { class: 'count', role: 'status' });
  #list = new List({ label: 'rows of the view' });
  #stored = element('div', { class: 'stored', hidden: true });
  #comparison = element('div', { class: 'comparison-holder' });
  // A slider moves faster than rows arrive.
  #load = oneAtATime(() => this.#openRows());
  #setAddress = debounce((at) => this.#studio.change({ at }, true), addressDelay);

  constructor(studio) {
    this.#studio = studio;
    this.#slider = new PositionSlider((position) => this.#moveTo(position));
    this.#positionField = this.#numberField('position', (value) => this.#moveTo(value));
    this.#comparePosition = this.#numberField('compare with position', (value) => studio.change({ compare: value }));
    this.#text = element('input', {
      type: 'search', placeholder: 'filter rows', 'aria-label': 'filter rows', spellcheck: 'false',
      on: { input: debounce(() => studio.change({ text: this.#text.value }, true), 150) },
    });
    this.#follow = button('now', () => studio.change({ at: null }), { 'aria-pressed': 'true', title: 'follow the end of the log' });
    this.element = element('div', { class: 'tab views' },
      element('h1', { class: 'visually-hidden' }, 'Views'), this.#names,
      element('div', { class: 'view-main' },
        element('div', { class: 'toolbar', role: 'group', 'aria-label': 'position' },
          button('◀ previous change', () => this.slide(-1), { title: 'previous event that changed the view ( [ )' }),
          this.#labelled('position', this.#positionField),
          button('next change ▶', () => this.slide(1), { title: 'next event that changed the view ( ] )' }),
          this.#follow, this.#eventLink),
        this.#slider.element,
        element('div', { class: 'toolbar', role: 'group', 'aria-label': 'rows' }, this.#text,
          this.#labelled('compare with', this.#comparePosition),
          button('compare from here', () => studio.change({ compare: this.#query().at }),
            { title: 'keep this position, then move to another one' }),
          button('end comparison', () => studio.change({ compare: null }), { class: 'quiet end-comparison' }), this.#count),
        this.#comparison, this.#stored, this.#list.element));
  }

  /** The address of the shown rows as JSON. */
  address() {
    const { name, at, text } = this.#query();
    return this.#studio.source.address(`views/${encodeURIComponent(name)}`, text === '' ? { at } : { at, text });
  }

  /** Shows what the URL's parameters select. */
  async show(parameters) {
    this.#parameters = parameters;
    if (this.#views.length === 0) await this.#loadViews();
    if (this.#views.length === 0) return;
    this.#showControls();
    this.#loadMarks();
    await Promise.all([this.#openRows(), this.#compare()]);
  }

  /** Loads anew what is shown, because the log has changed. */
  async refresh() {
    this.#marksOf = null;
    await this.#loadViews();
    if (this.#views.length === 0) return;
    this.#showControls();
    this.#loadMarks();
    // The past does not change, except by retractions, which change its rows at any position.
    this.#shown = null;
    this.#compared = null;
    await Promise.all([this.#openRows(), this.#compare()]);
  }

  /** Cancels what is under way, because another tab is shown. */
  hide() {
    this.#opening?.close();
    this.#windows?.close();
    this.#shown = null;
  }

  /** Moves the focus into the filter of rows. */
  search() {
    this.#text.focus();
  }

  /** Moves the active row. */
  step(direction) {
    this.#list.activate(this.#list.active + direction);
    this.#list.element.focus();
  }

  /** Nothing in this tab closes. */
  close() {
    return false;
  }

  /** Goes to the next (1) or previous (-1) event that changed the view. */
  async slide(direction) {
    const { name, at } = this.#query();
    try {
      const position = await this.#studio.source.step(name, at, direction > 0 ? 'next' : 'previous');
      if (position == null) announce(`the view does not change ${direction > 0 ? 'after' : 'before'} this position`);
      else this.#moveTo(position);
    } catch (error) {
      this.#failed(error);
    }
  }

  #labelled(label, field) {
    return element('label', { class: 'field inline' }, label, field);
  }

  #numberField(label, onChange) {
    const field = element('input', {
      type: 'number', min: '0', inputmode: 'numeric', 'aria-label': label,
      on: { change: () => { if (field.value !== '') onChange(this.#clamped(Number(field.value))); } },
    });
    return field;
  }

  #clamped(position) {
    const { compactedThrough, last } = this.#studio.log;
    return Math.max(compactedThrough, Math.min(position, last ?? 0));
  }

  #query() {
    const last = this.#studio.log.last ?? 0;
    const at = this.#parameters.get('at');
    return {
      name: this.#parameters.get('view') ?? this.#views[0]?.name ?? '',
      at: at === null ? last : this.#clamped(Number(at) || 0),
      text: this.#parameters.get('text') ?? '',
    };
  }

  async #loadViews() {
    try {
      const answer = await this.#studio.source.views();
      this.#views = answer.views;
    } catch (error) {
      this.#failed(error);
    }
  }

  #showControls() {
    const { name, at, text } = this.#query();
    const { compactedThrough, last } = this.#studio.log;
    setChildren(this.#names, ...this.#views.map((view) => element('a', {
      href: this.#studio.linkWith({ view: view.name, text: null }), 'aria-current': view.name === name ? 'true' : null,
      title: view.types == null ? null : view.types.join('\n'),
    }, content(view.name), view.kind === 'stored' ? noteText(' stored') : '',
    view.rows == null ? '' : element('span', { class: 'number' }, formatCount(view.rows)))));
    this.#slider.setRange(compactedThrough, last ?? 0);
    this.#slider.position = at;
    if (document.activeElement !== this.#positionField) this.#positionField.value = String(at);
    if (document.activeElement !== this.#text) this.#text.value = text;
    this.#comparePosition.value = /^\d+$/.exec(this.#parameters.get('compare') ?? '') ?? '';
    this.element.classList.toggle('comparing', this.#parameters.has('compare'));
    this.#follow.setAttribute('aria-pressed', String(!this.#parameters.has('at')));
    this.#eventLink.href = this.#studio.link('timeline', { event: at });
    this.#eventLink.hidden = at < 1;
  }

  #moveTo(position) {
    this.#parameters = new URLSearchParams(this.#parameters);
    this.#parameters.set('at', String(position));
    this.#showControls();
    this.#load();
    this.#setAddress(position);
  }

  async #loadMarks() {
    const { name } = this.#query();
    const key = `${name} ${this.#studio.log.last}`;
    if (this.#marksOf === key) return;
    this.#marksOf = key;
    try {
      const { buckets } = await this.#studio.source.marks(name, markBuckets);
      this.#slider.marks = buckets;
    } catch (error) {
      this.#failed(error);
    }
  }

  async #openRows() {
    const query = this.#query();
    const key = JSON.stringify(query);
    if (key === this.#shown) return;
    this.#shown = key;
    const isOtherView = this.#windows?.answer?.view !== query.name;
    const opened = new RowWindows((offset, limit, signal) => this.#studio.source.view(query.name, query.at, offset, limit, query.text, signal)
      .then((answer) => (answer.kind === 'stored' ? { ...answer, total: 0, rows: [] } : answer)),
    (windows) => this.#loaded(windows), (error) => this.#failed(error));
    this.#opening?.close();
    this.#opening = opened;
    this.element.classList.add('waiting');
    const started = performance.now();
    try {
      await opened.open();
    } catch (error) {
      if (this.#opening === opened) this.#failed(error);
      return;
    }
    if (this.#opening !== opened) return;
    this.element.classList.remove('waiting');
    this.#windows?.close();
    this.#windows = opened;
    this.#showAnswer(opened, isOtherView, performance.now() - started);
  }

  #showAnswer(opened, isOtherView, milliseconds) {
    const { answer } = opened;
    const isStored = answer.kind === 'stored';
    this.#stored.hidden = !isStored;
    this.#list.element.hidden = isStored;
    const took = `${formatCount(Math.round(milliseconds))} ms`;
    if (isStored) {
      this.#count.textContent = `stored at position ${formatCount(answer.at)}, ${formatBytes(answer.bytes)}, ${took}`;
      this.#showStored(answer);
      return;
    }
    this.#count.textContent = `${countOf(answer.total, 'row')} at position ${formatCount(answer.at)}, ${took}`;
    this.#showColumns(answer.columns, isOtherView);
    this.#list.setRows(opened, isOtherView);
  }

  /** Shows a part of the rows that the reader has scrolled to. */
  #loaded(windows) {
    if (windows !== this.#windows) return;
    this.#showColumns(windows.answer.columns, false);
    this.#list.update();
  }

  /** Shows the columns of some rows. Those that are shown stay; the longer list gives the order. */
  #showColumns(names, isOtherView) {
    const known = isOtherView ? [] : this.#columns;
    const all = names.length < known.length ? [...new Set([...known, ...names])] : [...new Set([...names, ...known])];
    if (!isOtherView && all.join('\n') === known.join('\n')) return;
    this.#columns = all;
    this.#list.setColumns(all.map((name) => ({
      label: content(name), width: 8, grow: 1, cell: (row) => content(cellText(row[name]).slice(0, 300)),
    })));
  }

  #showStored(answer) {
    setChildren(this.#stored,
      noteLine('Only the app folds this view. Its state is known where a checkpoint stores it.'),
      answer.state == null ? element('pre', {}, answer.hex ?? '') : jsonView(JSON.stringify(answer.state)));
  }

  async #compare() {
    const other = this.#parameters.get('compare');
    const { name, at } = this.#query();
    const key = other === null ? null : `${name} ${at} ${other}`;
    if (key === this.#compared && key !== null) return;
    this.#compared = key;
    this.#comparing?.abort();
    if (other === null) {
      this.#comparedAnswer = null;
      setChildren(this.#comparison);
      return;
    }
    const request = new AbortController();
    this.#comparing = request;
    if (this.#comparedAnswer === null) setChildren(this.#comparison, noteLine('comparing…'));
    const [from, to] = [this.#clamped(Number(other) || 0), at].sort((a, b) => a - b);
    const load = (offset, limit) => this.#studio.source.changes(name, from, to, offset, limit, request.signal);
    try {
      const answer = await load(0, changesPerRequest);
      const fingerprint = JSON.stringify([answer, this.#studio.zone]);
      if (this.#comparing !== request || fingerprint === this.#comparedAnswer) return;
      this.#comparedAnswer = fingerprint;
      setChildren(this.#comparison, comparison(this.#studio, answer, load));
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error) {
    if (isCancelled(error)) return;
    this.element.classList.remove('waiting');
    this.#shown = null;
    this.#count.textContent = error.message;
    this.#studio.reportFailure(error);
  }
}

// The histogram of events over time, stacked by type, in which a range of time is selected.
import { button, content, element, setChildren, svgElement } from './dom.js';
import { countOf, formatCount, formatTime } from './text.js';

const columnHeight = 100;

/**
 * The histogram. `onSelect(since, until)` gets RFC 3339 times, or nulls to clear; `onType(name)` a type;
 * `onZoom(isZoomed)` whether only the selected time is to be shown.
 */
export class Histogram {
  #onSelect;
  #onType;
  #onZoom;
  #zone = 'utc';
  #answer = null;
  #range = null; // selected buckets [first, end)
  #dragStart = null;
  #svg = svgElement('svg', { class: 'histogram-plot', preserveAspectRatio: 'none', role: 'img' });
  #selection = element('div', { class: 'histogram-selection', hidden: true });
  #handles = ['start', 'end'].map((name) => this.#handle(name));
  #plot = element('div', { class: 'histogram-area' }, this.#svg, this.#selection, this.#handles);
  #axis = element('div', { class: 'histogram-axis' });
  #legend = element('div', { class: 'legend', role: 'group', 'aria-label': 'types in the histogram' });
  #hover = element('span', { class: 'histogram-hover' });
  #isZoomed = false;
  #zoom = button('', () => this.#onZoom(!this.#isZoomed), { class: 'quiet', hidden: true });
  #clear = button('clear selection', () => this.#onSelect(null, null), { class: 'quiet', hidden: true });

  constructor({ onSelect, onType, onZoom }) {
    this.#onSelect = onSelect;
    this.#onType = onType;
    this.#onZoom = onZoom;
    this.element = element('section', { class: 'histogram', 'aria-label': 'events over time' },
      this.#plot, this.#axis, element('div', { class: 'histogram-foot' }, this.#legend, this.#hover, this.#zoom, this.#clear));
    this.#plot.addEventListener('pointerdown', (event) => this.#pressed(event));
    this.#plot.addEventListener('pointermove', (event) => this.#moved(event));
    this.#plot.addEventListener('pointerup', (event) => this.#released(event));
    this.#plot.addEventListener('pointerleave', () => this.#hover.replaceChildren());
  }

  /** Shows counts, and the selected range of time if there is one. */
  show(answer, { since, until, isZoomed, zone }) {
    this.#answer = answer;
    this.#zone = zone;
    this.#isZoomed = isZoomed;
    const count = answer.buckets.length;
    this.element.hidden = count === 0;
    if (count === 0) return;
    const isSelected = since !== null || until !== null;
    this.#zoom.hidden = !isSelected && !isZoomed;
    this.#zoom.textContent = isZoomed ? 'show all time' : 'zoom to selection';
    this.#range = isSelected ? [this.#bucketOf(since, 0), this.#bucketOf(until, count)] : null;
    this.#drawBars();
    this.#drawRange();
    setChildren(this.#axis, ...[0, 0.5, 1].map((part) => element('span', {}, this.#timeAt(part * count))));
    const isPresent = (series) => answer.buckets.some((counts) => counts[series] > 0);
    setChildren(this.#legend, answer.types.map((name, series) => (isPresent(series) ? this.#legendItem(name, series) : null)));
  }

  #start() {
    return new Date(this.#answer.start).getTime();
  }

  #bucketWidth() {
    const length = new Date(this.#answer.end).getTime() - this.#start();
    return this.#answer.milliseconds || Math.max(1, length / this.#answer.buckets.length);
  }

  #moment(bucket) {
    return new Date(Math.round(this.#start() + bucket * this.#bucketWidth())).toISOString();
  }

  #timeAt(bucket) {
    return formatTime(this.#moment(bucket), this.#zone);
  }

  #bucketOf(time, fallback) {
    if (time === null) return fallback;
    const bucket = (new Date(time).getTime() - this.#start()) / this.#bucketWidth();
    return Math.max(0, Math.min(this.#answer.buckets.length, bucket));
  }

  #drawBars() {
    const { buckets } = this.#answer;
    const sums = buckets.map((counts) => counts.reduce((sum, count) => sum + count, 0));
    const most = Math.max(1, ...sums);
    this.#svg.setAttribute('viewBox', `0 0 ${buckets.length} ${columnHeight}`);
    const total = sums.reduce((sum, count) => sum + count, 0);
    const range = `from ${this.#timeAt(0)} to ${this.#timeAt(buckets.length)}`;
    this.#svg.setAttribute('aria-label', `${countOf(total, 'event')} ${range}; at most ${formatCount(most)} in one column`);
    const bars = [];
    buckets.forEach((counts, column) => {
      let top = columnHeight;
      counts.forEach((count, series) => {
        if (count === 0) return;
        // A column with few events stays visible beside one with very many.
        const height = Math.max(1, (count / most) * columnHeight);
        top -= height;
        bars.push(svgElement('rect', { class: `series-${series % 9}`, x: column + 0.06, y: top, width: 0.88, height }));
      });
    });
    setChildren(this.#svg, ...bars);
  }

  #drawRange() {
    const count = this.#answer.buckets.length;
    this.#selection.hidden = this.#range === null;
    this.#clear.hidden = this.#range === null;
    const [first, end] = this.#range ?? [0, count];
    this.#selection.style.left = `${(first / count) * 100}%`;
    this.#selection.style.width = `${((end - first) / count) * 100}%`;
    [first, end].forEach((bucket, index) => {
      const handle = this.#handles[index];
      handle.style.left = `${(bucket / count) * 100}%`;
      handle.setAttribute('aria-valuemin', '0');
      handle.setAttribute('aria-valuemax', String(count));
      handle.setAttribute('aria-valuenow', String(Math.round(bucket)));
      handle.setAttribute('aria-valuetext', this.#timeAt(bucket));
    });
  }

  #legendItem(name, series) {
    const mark = element('span', { class: `swatch series-${series % 9}`, 'aria-hidden': 'true' });
    if (name === 'other') return element('span', { class: 'legend-item' }, mark, 'other');
    return button([mark, content(name)], () => this.#onType(name), { class: 'quiet legend-item', title: 'show only this type' });
  }

  #handle(name) {
    return element('div', {
      class: 'histogram-handle', role: 'slider', tabindex: '0', 'aria-label': `${name} of the selected time`,
      on: { keydown: (event) => this.#handlePressed(event, name === 'start' ? 0 : 1) },
    });
  }

  #handlePressed(event, side) {
    const count = this.#answer.buckets.length;
    const range = [...(this.#range ?? [0, count])];
    const steps = {
      ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10, Home: -count, End: count,
    };
    if (event.key === 'Escape' && this.#range) {
      event.stopPropagation();
      this.#onSelect(null, null);
    }
    if (!(event.key in steps)) return;
    event.preventDefault();
    const moved = Math.round(range[side]) + steps[event.key];
    range[side] = side === 0 ? Math.max(0, Math.min(moved, Math.ceil(range[1]) - 1)) : Math.min(count, Math.max(moved, Math.floor(range[0]) + 1));
    this.#select(range);
  }

  #select([first, end]) {
    const count = this.#answer.buckets.length;
    this.#range = [first, end];
    this.#drawRange();
    this.#onSelect(first > 0 ? this.#moment(first) : null, end < count ? this.#moment(end) : null);
  }

  #bucketAt(event) {
    const box = this.#plot.getBoundingClientRect();
    const part = (event.clientX - box.left) / box.width;
    return Math.max(0, Math.min(this.#answer.buckets.length - 1, Math.floor(part * this.#answer.buckets.length)));
  }

  #pressed(event) {
    if (event.button !== 0 || this.#answer === null) return;
    this.#plot.setPointerCapture(event.pointerId);
    this.#dragStart = this.#bucketAt(event);
  }

  #moved(event) {
    if (this.#answer === null) return;
    const bucket = this.#bucketAt(event);
    const sum = this.#answer.buckets[bucket].reduce((total, count) => total + count, 0);
    this.#hover.textContent = `${this.#timeAt(bucket)}: ${countOf(sum, 'event')}`;
    if (this.#dragStart === null) return;
    this.#range = [Math.min(bucket, this.#dragStart), Math.max(bucket, this.#dragStart) + 1];
    this.#drawRange();
  }

  #released(event) {
    if (this.#dragStart === null) return;
    const bucket = this.#bucketAt(event);
    const range = [Math.min(bucket, this.#dragStart), Math.max(bucket, this.#dragStart) + 1];
    this.#dragStart = null;
    this.#select(range);
  }
}

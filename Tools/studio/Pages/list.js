// A table of any length that keeps only the rows on the screen in the document.
import { element, setChildren } from './dom.js';

// Browsers limit an element's height (Firefox to 17.8 million px, Chromium to 33 million).
const maximumHeight = 8_000_000;
const overscan = 6;
// Beyond this distance from the anchor, offsets of rows are counted from a new anchor.
const anchorReach = 20_000;
// A scroll that stops for this long is put back in proportion.
const settleTime = 150;

// In rem, as in studio.css.
const columnGap = 0.75;
const rowPadding = 0.6;

let listCount = 0;

/**
 * A virtualised grid. `rows` has `total`, `row(index)` (null while it loads) and `want(first, last)`.
 * The keyboard moves the active row; Enter opens it.
 */
export class List {
  #rows = { total: 0, row: () => null, want: () => {} };
  #columns = [];
  #shown = new Map();
  #anchor = 0;
  #rowHeight = 28;
  // Kept, since reading them from the element would make the browser lay out the page at each scroll.
  #viewHeight = 0;
  #virtualTop = 0;
  #lastScrollTop = 0;
  #active = -1;
  #settleTimer = null;
  #frame = null;
  #prefix;
  #header = element('div', { role: 'row', class: 'list-header', 'aria-rowindex': '1' });
  #layer = element('div', { role: 'rowgroup', class: 'list-layer' });
  #spacer = element('div', { class: 'list-spacer', role: 'presentation' }, this.#layer);
  #probe = element('div', { class: 'list-probe', 'aria-hidden': 'true' });
  #onOpen;
  #onScroll;
  #isMarked;

  constructor({ label, className = '', onOpen = () => {}, onScroll = () => {}, isMarked = () => false }) {
    listCount += 1;
    this.#prefix = `list-${listCount}`;
    this.#onOpen = onOpen;
    this.#onScroll = onScroll;
    this.#isMarked = isMarked;
    this.element = element('div', {
      class: `list ${className}`, role: 'grid', tabindex: '0', 'aria-label': label,
      on: { scroll: () => this.#scrolled(), keydown: (event) => this.#pressed(event), click: (event) => this.#clicked(event) },
    }, element('div', { role: 'rowgroup', class: 'list-head' }, this.#header), this.#spacer, this.#probe);
    new ResizeObserver(() => this.#measure()).observe(this.element);
  }

  /** The index of the active row; -1 if there is none. */
  get active() {
    return this.#active;
  }

  /** True if the first row is on the screen. */
  get isAtTop() {
    return this.#virtualTop < this.#rowHeight;
  }

  /** Sets the columns: `{ label, width, grow, className, cell(row) }`, the least width in rem and the share of the rest. */
  setColumns(columns) {
    this.#columns = columns;
    const tracks = columns.map(({ width, grow }) => (grow ? `minmax(${width}rem, ${grow}fr)` : `${width}rem`));
    this.element.style.setProperty('--columns', tracks.join(' '));
    // Header and rows are laid out one by one; a common least width keeps their columns in line.
    const width = columns.reduce((sum, column) => sum + column.width, 0) + (columns.length - 1) * columnGap + 2 * rowPadding;
    this.element.style.setProperty('--list-width', `${width}rem`);
    setChildren(this.#header, ...columns.map((column) => element('span',
      { role: 'columnheader', class: `cell ${column.className ?? ''}` }, column.label)));
    this.element.setAttribute('aria-colcount', String(columns.length));
    this.#forgetRows();
    this.#measure();
  }

  /** Shows other rows. The place in the list stays unless `toTop` is set. */
  setRows(rows, toTop) {
    this.#rows = rows;
    this.#forgetRows();
    if (toTop) {
      this.#active = -1;
      this.#moveTo(0);
    }
    this.update();
  }

  /** Shows what the rows have now. */
  update() {
    const total = this.#rows.total;
    this.element.setAttribute('aria-rowcount', String(total + 1));
    this.#spacer.style.height = `${this.#scaledHeight}px`;
    if (this.#active >= total) this.#active = total - 1;
    this.#virtualTop = Math.min(this.#virtualTop, this.#maximumTop);
    this.#render();
  }

  /** Makes a row active and brings it onto the screen. */
  activate(index) {
    if (this.#rows.total === 0) return;
    this.#active = Math.max(0, Math.min(index, this.#rows.total - 1));
    const top = this.#active * this.#rowHeight;
    if (top < this.#virtualTop) this.#moveTo(top);
    else if (top + this.#rowHeight > this.#virtualTop + this.#viewHeight) this.#moveTo(top + this.#rowHeight - this.#viewHeight);
    this.#render();
  }

  /** Makes a row active and puts it into the middle of the screen if it is not on it. */
  reveal(index) {
    const top = index * this.#rowHeight;
    if (top < this.#virtualTop || top + this.#rowHeight > this.#virtualTop + this.#viewHeight) {
      this.#moveTo(top - this.#viewHeight / 2);
    }
    this.activate(index);
  }

  /** Keeps the active row active after `count` rows were added before it. */
  shiftActive(count) {
    if (this.#active < 0) return;
    this.#active = Math.max(0, this.#active + count);
    this.update();
  }

  /** Opens the active row. */
  openActive() {
    const row = this.#rows.row(this.#active);
    if (row) this.#onOpen(row, this.#active);
  }

  get #fullHeight() {
    return this.#rows.total * this.#rowHeight;
  }

  get #scaledHeight() {
    return Math.min(this.#fullHeight, maximumHeight);
  }

  get #maximumTop() {
    return Math.max(0, this.#fullHeight - this.#viewHeight);
  }

  get #scale() {
    const range = Math.max(1, this.#scaledHeight - this.#viewHeight);
    return this.#maximumTop / range;
  }

  #measure() {
    const height = this.#probe.getBoundingClientRect().height;
    if (height === 0) return; // hidden
    this.#viewHeight = Math.max(height, this.element.clientHeight - this.#spacer.offsetTop);
    if (height !== this.#rowHeight) {
      this.#virtualTop *= height / this.#rowHeight;
      this.#rowHeight = height;
      this.#forgetRows();
    }
    this.update();
    this.#settle();
  }

  #moveTo(top) {
    this.#virtualTop = Math.max(0, Math.min(top, this.#maximumTop));
    this.#settle();
  }

  #scrolled() {
    const top = this.element.scrollTop;
    const distance = top - this.#lastScrollTop;
    this.#lastScrollTop = top;
    if (distance === 0) return;
    // A wheel or a finger moves by pixels of rows; the scroll bar moves by parts of the whole list.
    const isJump = Math.abs(distance) > this.#viewHeight || this.#scale <= 1;
    this.#virtualTop = isJump ? top * Math.max(1, this.#scale) : this.#virtualTop + distance;
    this.#virtualTop = Math.max(0, Math.min(this.#virtualTop, this.#maximumTop));
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      this.#render();
    });
    clearTimeout(this.#settleTimer);
    this.#settleTimer = setTimeout(() => this.#settle(), settleTime);
    this.#onScroll();
  }

  /** Puts the scroll bar where the shown rows are in proportion to the whole list. */
  #settle() {
    this.element.scrollTop = this.#virtualTop / Math.max(1, this.#scale);
    this.#lastScrollTop = this.element.scrollTop;
    this.#render();
  }

  #forgetRows() {
    this.#shown.clear();
    this.#layer.replaceChildren();
  }

  #render() {
    const total = this.#rows.total;
    const first = Math.max(0, Math.floor(this.#virtualTop / this.#rowHeight) - overscan);
    const last = Math.min(total - 1, Math.ceil((this.#virtualTop + this.#viewHeight) / this.#rowHeight) + overscan);
    if (Math.abs(first - this.#anchor) > anchorReach) {
      this.#anchor = first;
      this.#forgetRows();
    }
    for (const [index, shown] of this.#shown) {
      if (index < first || index > last) {
        shown.element.remove();
        this.#shown.delete(index);
      }
    }
    const offset = this.#lastScrollTop - this.#virtualTop + this.#anchor * this.#rowHeight;
    this.#layer.style.transform = `translateY(${offset}px)`;
    let next = null;
    for (let index = last; index >= first; index -= 1) next = this.#showRow(index, next);
    if (this.#shown.has(this.#active)) this.element.setAttribute('aria-activedescendant', `${this.#prefix}-${this.#active}`);
    else this.element.removeAttribute('aria-activedescendant');
    if (total > 0) this.#rows.want(first, last);
  }

  #showRow(index, next) {
    const row = this.#rows.row(index);
    let shown = this.#shown.get(index);
    if (!shown) {
      const created = element('div', {
        role: 'row', class: 'list-row', id: `${this.#prefix}-${index}`, 'aria-rowindex': String(index + 2),
        style: { transform: `translateY(${(index - this.#anchor) * this.#rowHeight}px)` },
      });
      shown = { element: created, row: undefined };
      this.#shown.set(index, shown);
      this.#layer.insertBefore(created, next);
    }
    if (shown.row !== row) {
      shown.row = row;
      shown.element.classList.toggle('loading', row === null);
      shown.element.replaceChildren(...this.#columns.map((column) => element('span',
        { role: 'gridcell', class: `cell ${column.className ?? ''}` }, row === null ? '·' : column.cell(row))));
    }
    const isActive = index === this.#active;
    const isMarked = row !== null && this.#isMarked(row);
    shown.element.classList.toggle('active', isActive);
    shown.element.classList.toggle('marked', isMarked);
    shown.element.setAttribute('aria-selected', String(isMarked));
    return shown.element;
  }

  #pressed(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target !== this.element) return;
    const page = Math.max(1, Math.floor(this.#viewHeight / this.#rowHeight) - 1);
    const targets = {
      ArrowDown: this.#active + 1, ArrowUp: this.#active - 1, PageDown: this.#active + page, PageUp: this.#active - page,
      Home: 0, End: this.#rows.total - 1,
    };
    if (event.key in targets) {
      event.preventDefault();
      this.activate(targets[event.key]);
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.openActive();
    }
  }

  #clicked(event) {
    const clicked = event.target.closest('.list-row');
    if (!clicked || event.target.closest('a, button')) return;
    for (const [index, shown] of this.#shown) {
      if (shown.element === clicked) {
        this.activate(index);
        this.openActive();
      }
    }
  }
}

// The slider over the positions of the log, with marks where the shown view changes.
import { element, svgElement } from './dom.js';
import { formatCount } from './text.js';

const markHeight = 100;
const leastMark = 12;

/** The slider. `onMove(position)` is called while it moves. */
export class PositionSlider {
  #marks = svgElement('path', {});
  #picture = svgElement('svg', { class: 'slider-marks', 'aria-hidden': 'true', preserveAspectRatio: 'none' }, this.#marks);
  #input;

  constructor(onMove) {
    this.#input = element('input', {
      type: 'range', step: '1', 'aria-label': 'position in the log', on: { input: () => onMove(Number(this.#input.value)) },
    });
    this.element = element('div', { class: 'slider' }, this.#picture, this.#input);
  }

  /** Sets the range of positions. */
  setRange(first, last) {
    this.#input.min = String(first);
    this.#input.max = String(Math.max(first, last));
  }

  /** Shows a position. */
  set position(position) {
    this.#input.value = String(position);
    this.#input.setAttribute('aria-valuetext', `position ${formatCount(position)}`);
  }

  /** Sets the marks: the number of events that changed the view, in equal ranges of positions. */
  set marks(buckets) {
    const most = Math.max(1, ...buckets);
    this.#picture.setAttribute('viewBox', `0 0 ${Math.max(1, buckets.length)} ${markHeight}`);
    this.#marks.setAttribute('d', buckets.map((count, index) => {
      if (count === 0) return '';
      // The square root keeps a single event visible beside hundreds.
      const height = Math.max(leastMark, Math.sqrt(count / most) * markHeight);
      return `M${index} ${markHeight}v${-height}h0.8v${height}z`;
    }).join(''));
  }
}

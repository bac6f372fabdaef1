// Plots with a table of the same numbers for readers who cannot see them.
import { content, element, svgElement } from './dom.js';
import { table } from './table.js';

const plotWidth = 600;
const plotHeight = 120;
const shownBars = 40;

function figure(label, picture, captions, numbers) {
  return element('figure', { class: 'plot' }, element('figcaption', {}, label), captions, picture,
    element('details', {}, element('summary', {}, 'as a table'), numbers));
}

/**
 * Lines over a common horizontal axis. `series` are `{ name, value(point), format(value) }`;
 * each has its own vertical scale, whose greatest value stands in the legend.
 */
export function linePlot(label, points, horizontal, series) {
  const positions = points.map(horizontal.value);
  const start = Math.min(...positions);
  const width = Math.max(1, Math.max(...positions) - start);
  const greatest = series.map(({ value }) => Math.max(1e-9, ...points.map(value)));
  const left = (place) => ((positions[place] - start) / width) * plotWidth;
  // A margin of 2 keeps the line's whole width inside the picture.
  const top = (number, index) => plotHeight - (number / greatest[index]) * (plotHeight - 4) - 2;
  const lines = series.map(({ value }, index) => svgElement('polyline', {
    class: `line line-${index}`, 'vector-effect': 'non-scaling-stroke',
    points: points.map((point, place) => `${left(place)},${top(value(point), index)}`).join(' '),
  }));
  const summary = series.map(({ name, format }, index) => `${name} at most ${format(greatest[index])}`).join(', ');
  const viewBox = `0 0 ${plotWidth} ${plotHeight}`;
  const picture = svgElement('svg', { viewBox, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${label}: ${summary}` }, lines);
  const legend = element('p', { class: 'legend' }, series.map(({ name, format }, index) => element('span', { class: 'legend-item' },
    element('span', { class: `swatch stroke-${index}`, 'aria-hidden': 'true' }), `${name}, at most ${format(greatest[index])}`)));
  const axis = element('div', { class: 'plot-axis' },
    element('span', {}, horizontal.format(points[0])), element('span', {}, horizontal.format(points.at(-1))));
  const numbers = table(label, [{ label: horizontal.name, cell: horizontal.format },
    ...series.map(({ name, value, format }) => ({ label: name, className: 'number', cell: (point) => format(value(point)) }))], points);
  return figure(label, [picture, axis], legend, numbers);
}

/** Horizontal bars, one for each row, with the number beside it. */
export function barPlot(label, rows, { name, value, format }) {
  const greatest = Math.max(1e-9, ...rows.map(value));
  const bar = (row) => element('span', { class: 'bar', style: { width: `${(value(row) / greatest) * 100}%` } });
  const bars = rows.slice(0, shownBars).map((row) => element('div', { class: 'bar-row' },
    element('span', { class: 'bar-name' }, content(name(row))),
    element('span', { class: 'bar-track', 'aria-hidden': 'true' }, bar(row)),
    element('span', { class: 'number' }, format(row))));
  const numbers = table(label, [{ label: 'name', cell: (row) => content(name(row)) }, { label, className: 'number', cell: format }], rows);
  return figure(label, element('div', { class: 'bars' }, bars), '', numbers);
}

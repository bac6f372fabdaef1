// Draws a segment as a bar: its ranges in true proportion, and what the checkpoints cover.
import { element } from './dom.js';
import { countOf, formatBytes, formatCount } from './text.js';

// Narrower ranges of one kind are drawn as one: no screen shows them apart.
const smallestShare = 1 / 800;

/** The kinds of ranges with their names, in the order of the legend. */
export const rangeKinds = {
  header: 'header', frame: 'frames', removedIDs: 'removed ids', footer: 'footer', marker: 'clean-shutdown marker',
  preallocated: 'preallocated space', torn: 'torn tail', damage: 'damage', rest: 'rest',
};

function mergedRanges(segment) {
  const merged = [];
  let frames = 0;
  for (const range of segment.ranges) {
    const isFrame = range.kind === 'frame';
    const shade = isFrame && frames % 2 === 1 ? 'odd' : 'even';
    if (isFrame) frames += 1;
    const previous = merged.at(-1);
    const isSmall = range.bytes / segment.bytes < smallestShare;
    if (previous && previous.kind === range.kind && isSmall && range.kind !== 'damage') previous.bytes += range.bytes;
    else merged.push({ kind: range.kind, shade, offset: range.offset, bytes: range.bytes });
  }
  return merged;
}

function rangeElement(range, segment) {
  return element('span', {
    class: `range range-${range.kind} ${range.shade}`,
    title: `${rangeKinds[range.kind] ?? range.kind}, from byte ${formatCount(range.offset)}, ${formatBytes(range.bytes)}`,
    style: { left: `${(range.offset / segment.bytes) * 100}%`, width: `calc(${(range.bytes / segment.bytes) * 100}% + 0.5px)` },
  });
}

/** How much of a segment's file a checkpoint at a position covers, from 0 to 1. */
function coveredShare(segment, position) {
  if (position < segment.base) return 0;
  if (segment.last != null && position >= segment.last) return 1;
  const range = segment.ranges.find(({ first, last }) => first != null && first <= position && position <= last);
  if (!range) return 0;
  const part = (position - range.first + 1) / (range.last - range.first + 1);
  return (range.offset + part * range.bytes) / segment.bytes;
}

function checkpointLines(segment, checkpoints) {
  return checkpoints.filter(({ position }) => position != null).map(({ name, position }) => element('span', { class: 'covered' },
    element('span', { class: 'covered-line', style: { width: `${coveredShare(segment, position) * 100}%` } }),
    element('span', { class: 'covered-name' }, name)));
}

/** Bytes of a segment by kind of range, in words. */
export function segmentSummary(segment) {
  const sums = new Map();
  for (const range of segment.ranges) sums.set(range.kind, (sums.get(range.kind) ?? 0) + range.bytes);
  return Array.from(sums, ([kind, bytes]) => (kind === 'frame'
    ? `${countOf(segment.frames, 'frame')} ${formatBytes(bytes)}` : `${rangeKinds[kind] ?? kind} ${formatBytes(bytes)}`)).join(' · ');
}

/** The bar of a segment; its length is in proportion to the longest segment's. */
export function segmentBar(segment, longest, checkpoints) {
  return element('div', { style: { width: `${Math.max(4, (segment.bytes / longest) * 100)}%` } },
    element('div', { class: 'ranges', role: 'img', 'aria-label': segmentSummary(segment) },
      mergedRanges(segment).map((range) => rangeElement(range, segment))),
    element('div', { class: 'covers', 'aria-hidden': 'true' }, checkpointLines(segment, checkpoints)));
}

// The marks of statuses: each has a shape and a word, so that colour is never the only sign.
import { element } from './dom.js';

const statusShapes = {
  pending: '○', parked: '■', conflict: '◆', settled: '●', retracted: '✕',
  received: '↓', local: '⌂', unknown: '?', record: '≡',
  PENDING: '○', FAILED: '■', CONFLICT: '◆',
};

const statusMeanings = {
  pending: 'waits for the server',
  parked: 'out of the queue until it is retried or discarded',
  conflict: 'the server has another event instead; a decision is needed',
  settled: 'the server has it',
  retracted: 'counts as never recorded',
  received: 'from another device',
  local: 'stays on this device',
  unknown: 'its status is not known',
  record: 'a record of syncing',
};

const entryStatuses = { PENDING: 'pending', FAILED: 'parked', CONFLICT: 'conflict' };

/** The status of the timeline that an entry of the outbox has: `FAILED` is parked. */
export function statusOfEntry(status) {
  return entryStatuses[status] ?? 'unknown';
}

/** A status as shape and word. */
export function statusMark(status) {
  const shape = statusShapes[status] ?? '?';
  return element('span', { class: `status status-${status}`, title: statusMeanings[status] ?? null },
    element('span', { class: 'shape', 'aria-hidden': 'true' }, shape), status);
}

// The data source of the mailed form: answers from the data inside the page, as the server would.
import { SourceFailure } from './failure.js';

const shownData = 300;
const maximumSeries = 7;
const otherSeries = 'other';

function memberIsOneOf(filter, name, value) {
  const allowed = filter.getAll(name);
  return allowed.length === 0 || allowed.includes(value ?? '');
}

function lowerCaseASCII(text) {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** The data of a stored line as text. Members before `time` are strings, so the mark cannot stand inside one. */
function dataOfLine(line) {
  const mark = ',"data":';
  const start = line.indexOf(mark, line.indexOf(',"time":"'));
  return start < 0 ? '' : line.slice(start + mark.length, -1);
}

function indexedLine(stored) {
  const event = JSON.parse(stored.line);
  return {
    event,
    stored,
    position: Number(event.position ?? event.sequence),
    row: {
      position: Number(event.position ?? event.sequence),
      id: event.id,
      time: event.time,
      type: event.type,
      subject: event.subject ?? null,
      lane: event.partitionkey,
      source: event.source,
      own: event.position === undefined,
      sequence: Number(event.sequence),
      status: stored.status,
      bytes: new TextEncoder().encode(stored.line).length,
      data: dataOfLine(stored.line).slice(0, shownData),
    },
  };
}

function linkTo(relation, line, id = line.row.id) {
  const { position = null, type = null, subject = null, time = null } = line?.row ?? {};
  return { relation, id, position, type, subject, time, detail: null };
}

/** The last index whose item is not after `position`; -1 if there is none. */
function lastIndexAt(items, position) {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].position <= position) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function csvField(value) {
  // A field without any character is no value; the empty text is "".
  if (value === null || value === undefined) return '';
  const text = String(value);
  // A leading sign makes a spreadsheet run the field as a formula.
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return safe === '' || /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Answers from the data of a mailed file. The methods and answers are those of `ServedSource`. */
export class MailedSource {
  form = 'mailed';
  #data;
  #lines;
  #byID;
  #views;

  constructor(data) {
    this.#data = data;
    this.#lines = data.lines.map(indexedLine);
    this.#byID = new Map(this.#lines.map((line) => [line.row.id, line]));
    this.#views = new Map(data.views.map((view) => [view.name, view]));
  }

  /** What the file holds. */
  get note() {
    const { events } = this.#data.log;
    const held = this.#lines.length;
    return held < events ? `a copy with the newest ${held} of ${events} events` : 'a copy of the log';
  }

  /** A mailed file has no addresses; the dialog of data out shows none. */
  address() {
    return '';
  }

  async log() {
    return this.#data.log;
  }

  async events(filter, order, offset, limit) {
    const found = this.#found(filter, order);
    const rows = found.slice(offset, offset + limit).map((line) => line.row);
    return { total: found.length, offset, complete: true, read: this.#lines.length, rows };
  }

  async rank(filter, order, position) {
    const offset = this.#found(filter, order).findIndex((line) => line.position === position);
    return offset < 0 ? null : offset;
  }

  async histogram(filter, count) {
    const found = this.#found(filter, 'oldest');
    if (found.length === 0) return { start: null, end: null, milliseconds: 0, types: [], buckets: [], complete: true };
    const times = found.map((line) => Date.parse(line.row.time));
    const start = times.reduce((least, time) => Math.min(least, time), Infinity);
    const greatest = times.reduce((most, time) => Math.max(most, time), -Infinity);
    const milliseconds = Math.max(1, Math.ceil((greatest - start + 1) / count));
    const present = new Set(found.map((line) => line.row.type));
    const named = this.#data.log.types.map((type) => type.name).filter((name) => present.has(name));
    const types = named.length > maximumSeries ? [...named.slice(0, maximumSeries), otherSeries] : named;
    const series = new Map(types.map((name, index) => [name, index]));
    const buckets = Array.from({ length: count }, () => types.map(() => 0));
    found.forEach((line, index) => {
      buckets[Math.floor((times[index] - start) / milliseconds)][series.get(line.row.type) ?? types.length - 1] += 1;
    });
    const end = new Date(start + milliseconds * count).toISOString();
    return { start: new Date(start).toISOString(), end, milliseconds, types, buckets, complete: true };
  }

  async event(position) {
    const line = this.#lineAt(position);
    const { row, event, stored } = line;
    return { row, event, eventText: stored.line, place: this.#place(line), causes: this.#causes(line), effects: this.#effects(line) };
  }

  async story(position) {
    const { row } = this.#lineAt(position);
    return this.#data.stories[position] ?? {
      steps: [{ position, time: row.time, what: 'recorded', detail: `${row.type} in the lane ${row.lane}` }],
      status: row.status,
      detail: null,
    };
  }

  async find(id) {
    const line = this.#byID.get(id);
    if (!line) throw new SourceFailure('noEvent', `the log has no event with the id ${id}`);
    return line.position;
  }

  async views() {
    const { first, last, compactedThrough } = this.#data.log;
    const rows = (name) => this.#state(name, last ?? 0).size;
    const views = this.#data.views.map(({ name, types }) => ({ name, kind: 'built in', types, rows: rows(name), at: last }));
    return { views, first, last, compactedThrough };
  }

  async view(name, at, offset, limit, text) {
    const started = performance.now();
    const search = lowerCaseASCII(text);
    const rows = Array.from(this.#state(name, at).values()).filter((row) => text === '' || lowerCaseASCII(JSON.stringify(row)).includes(search));
    const shown = rows.slice(offset, offset + limit);
    return {
      view: name, at, kind: 'built in', total: rows.length, offset, columns: columnsOf(shown), rows: shown,
      milliseconds: Math.round(performance.now() - started),
    };
  }

  async marks(name, count) {
    const { first, last } = this.#data.log;
    const buckets = Array.from({ length: count }, () => 0);
    const width = ((last ?? 0) - (first ?? 0) + 1) / count;
    for (const position of this.#viewNamed(name).changes) {
      if (position >= first) buckets[Math.min(count - 1, Math.floor((position - first) / width))] += 1;
    }
    return { first, last, buckets };
  }

  async step(name, at, direction) {
    const { changes } = this.#viewNamed(name);
    const position = direction === 'next' ? changes.find((other) => other > at) : changes.findLast((other) => other < at);
    return position ?? null;
  }

  async changes(name, from, to, offset, limit) {
    const before = this.#state(name, from);
    const after = this.#state(name, to);
    const causes = this.#lastChanges(name, from, to);
    const rows = [];
    for (const key of new Set([...before.keys(), ...after.keys()])) {
      const change = this.#change(key, before.get(key) ?? null, after.get(key) ?? null, causes);
      if (change !== null) rows.push(change);
    }
    const count = (kind) => rows.filter((row) => row.change === kind).length;
    const counts = { added: count('added'), removed: count('removed'), changed: count('changed') };
    return { from, to, ...counts, offset, rows: rows.slice(offset, offset + limit) };
  }

  async outbox() {
    return this.#data.outbox;
  }

  async dependents() {
    return { dependents: [] };
  }

  async decide() {
    throw new SourceFailure('readOnly', 'a mailed file is a copy: nothing can be decided in it');
  }

  async files() {
    return this.#data.files;
  }

  async segment(name) {
    const segment = this.#data.segments[name];
    if (!segment) throw new SourceFailure('noFile', `the file has no data about ${name}`);
    return segment;
  }

  async compaction() {
    if (this.#data.compaction !== null) return this.#data.compaction;
    throw new SourceFailure('damaged', 'a damaged log is not compacted');
  }

  async verify() {
    return this.#data.verify;
  }

  async download(filter, format) {
    const lines = this.#found(filter, 'oldest');
    const text = format === 'csv' ? this.#csv(lines) : lines.map((line) => `${this.#outgoing(line)}\n`).join('');
    return new Blob([text], { type: format === 'csv' ? 'text/csv' : 'application/x-ndjson' });
  }

  #found(filter, order) {
    const number = (name, fallback) => (filter.has(name) ? Number(filter.get(name)) : fallback);
    const [from, to] = [number('from', 0), number('to', Infinity)];
    const [since, until] = [Date.parse(filter.get('since') ?? ''), Date.parse(filter.get('until') ?? '')];
    const text = lowerCaseASCII(filter.get('text') ?? '');
    const passes = ({ position, row, event, stored }) => position >= from && position <= to
      && memberIsOneOf(filter, 'type', row.type) && memberIsOneOf(filter, 'subject', row.subject)
      && memberIsOneOf(filter, 'lane', row.lane) && memberIsOneOf(filter, 'source', row.source)
      && memberIsOneOf(filter, 'status', row.status) && memberIsOneOf(filter, 'account', event.data?.userId)
      && !(Date.parse(row.time) < since) && !(Date.parse(row.time) >= until)
      && (text === '' || lowerCaseASCII(stored.line).includes(text));
    const found = filter.size === 0 ? [...this.#lines] : this.#lines.filter(passes);
    return order === 'oldest' ? found : found.reverse();
  }

  #lineAt(position) {
    const line = this.#lines[lastIndexAt(this.#lines, position)];
    if (line?.position === position) return line;
    throw new SourceFailure('noEvent', `the file has no event at position ${position}: it was not written, compacted, or left out`);
  }

  /** The location on disk: the file has the frames and blocks, and the lines before this one tell the rest. */
  #place({ position, row }) {
    const segment = Object.keys(this.#data.segments).sort().findLast((name) => Number(name.split('.')[0]) <= position);
    const frame = this.#data.segments[segment]?.frames.find(({ first, last }) => first <= position && position <= last);
    if (!frame) return null;
    const lines = this.#lines.slice(lastIndexAt(this.#lines, frame.first - 1) + 1, lastIndexAt(this.#lines, position) + 1);
    // The older events of the frame may have been left out.
    if (lines[0].position !== frame.first) return null;
    let events = 0;
    const block = frame.blocks.findIndex((candidate) => {
      events += candidate.events;
      return lines.length <= events;
    });
    if (block < 0) return null;
    return {
      segment,
      sealed: this.#data.files.segments.find(({ name }) => name === segment)?.sealed ?? false,
      frame: frame.number,
      frameOffset: frame.offset,
      frameBytes: frame.bytes,
      block,
      blockOffset: frame.blocks[block].offset,
      blockBytes: frame.blocks[block].bytes,
      lineOffset: lines.slice(0, -1).reduce((sum, line) => sum + line.row.bytes + 1, 0),
      lineBytes: row.bytes,
    };
  }

  #causes({ event }) {
    const relations = [['replaces', event.causationid], ['based on', event.baseid]];
    return relations.filter(([, id]) => typeof id === 'string').map(([relation, id]) => linkTo(relation, this.#byID.get(id), id));
  }

  #effects({ row }) {
    const effects = [];
    for (const other of this.#lines) {
      if (other.event.causationid === row.id) effects.push(linkTo('replaced by', other));
      if (other.event.baseid === row.id) effects.push(linkTo('base of', other));
    }
    const steps = this.#data.stories[row.position]?.steps ?? [];
    const verdicts = new Set(steps.map((step) => step.position).filter((position) => position !== null && position !== row.position));
    for (const position of verdicts) {
      const record = this.#lines[lastIndexAt(this.#lines, position)];
      if (record?.row.status === 'record') effects.push(linkTo('verdict', record));
    }
    return effects;
  }

  #viewNamed(name) {
    const view = this.#views.get(name);
    if (!view) throw new SourceFailure('noView', `the file has no view ${name}`);
    return view;
  }

  #state(name, at) {
    const rows = new Map();
    for (const { position, set, removed } of this.#viewNamed(name).history) {
      if (position > at) break;
      for (const [key, row] of Object.entries(set ?? {})) rows.set(key, row);
      for (const key of removed ?? []) rows.delete(key);
    }
    return new Map(Array.from(rows).sort(([one], [other]) => (one < other ? -1 : 1)));
  }

  #lastChanges(name, from, to) {
    const causes = new Map();
    for (const { position, set, removed } of this.#viewNamed(name).history) {
      if (position <= from || position > to) continue;
      for (const key of [...Object.keys(set ?? {}), ...(removed ?? [])]) causes.set(key, position);
    }
    return causes;
  }

  #change(key, before, after, causes) {
    const members = Object.keys({ ...before, ...after }).filter((name) => JSON.stringify(before?.[name]) !== JSON.stringify(after?.[name]));
    if (members.length === 0) return null;
    let change = 'changed';
    if (before === null) change = 'added';
    else if (after === null) change = 'removed';
    const line = causes.has(key) ? this.#lines[lastIndexAt(this.#lines, causes.get(key))] : undefined;
    const cause = line && line.position === causes.get(key)
      ? { position: line.position, type: line.row.type, subject: line.row.subject, time: line.row.time, id: line.row.id } : null;
    return { change, key, before, after, members, cause };
  }

  /** A line as it leaves the log: without the position that only this log has. */
  #outgoing({ stored, event }) {
    return event.position === undefined ? stored.line : stored.line.replace(`,"position":"${event.position}"`, '');
  }

  #csv(lines) {
    const names = ['position', 'id', 'time', 'type', 'subject', 'lane', 'source', 'status'];
    // An event without data has no value there: JSON is never the empty text.
    const rows = lines.map(({ row, stored }) => [...names.map((name) => row[name]), dataOfLine(stored.line) || null]);
    return [[...names, 'data'], ...rows].map((row) => `${row.map(csvField).join(',')}\r\n`).join('');
  }
}

/** The names of the fields, as the server gives them: those of the row with most of them in its order, then the others. */
function columnsOf(rows) {
  const longest = rows.reduce((best, row) => (Object.keys(row).length > Object.keys(best).length ? row : best), {});
  return [...new Set([longest, ...rows].flatMap((row) => Object.keys(row)))];
}

// The Files tab: the log's folder as it is on disk, and what verification finds in it.
import { announce, button, content, element, facts, noteBlock, noteLine, noteText, section, setChildren } from './dom.js';
import { PageTab } from './page.js';
import { barPlot, linePlot } from './plot.js';
import { rangeKinds, segmentBar, segmentSummary } from './segments.js';
import { table } from './table.js';
import { countOf, formatBytes, formatCount, formatRelative, formatTime } from './text.js';

const shownBlocks = 200;
const otherFileNames = {
  lock: 'the lock, with the incarnation', reserve: 'reserved space for repair', rules: 'the rules of the app’s event types', journal: 'journal of an unfinished change',
  files: 'files of the app', handover: 'its lock is a request for the log', unknown: 'not a file of the log',
};

const fileColumns = [
  { label: 'file', cell: ({ name }) => content(name) },
  { label: 'bytes', className: 'number', cell: ({ bytes }) => formatBytes(bytes) },
];

function ratio(lineBytes, bytes) {
  return bytes > 0 ? `${(lineBytes / bytes).toFixed(2)} : 1` : '–';
}

/** The Files tab. */
export class Files extends PageTab {
  #findings = null;
  #dryRun = null; // of a compaction
  #frames = null; // of the open segment
  #revealedFrame = null;

  constructor(studio) {
    super(studio, 'Files', 'files');
  }

  /** The address of the shown data as JSON. */
  address() {
    const segment = this.parameters.get('segment');
    return this.studio.source.address(segment === null ? 'files' : `files/${encodeURIComponent(segment)}`);
  }

  /** Loads the files. */
  load(signal) {
    return this.studio.source.files(signal);
  }

  /** Moves the focus to the first segment. */
  search() {
    this.body.querySelector('.segment a')?.focus();
  }

  /** Goes to the next (1) or previous (-1) segment. */
  step(direction) {
    const segments = this.answer?.segments ?? [];
    const index = segments.findIndex(({ name }) => name === this.parameters.get('segment'));
    const next = segments[Math.max(0, Math.min(index + direction, segments.length - 1))];
    if (next) this.studio.change({ segment: next.name, frame: null }, true);
  }

  /** Closes the open segment; false if there is none. */
  close() {
    if (!this.parameters.has('segment')) return false;
    this.studio.change({ segment: null, frame: null });
    return true;
  }

  /** Draws the sections, and loads the frames of the open segment. */
  fill() {
    super.fill();
    this.#openSegment();
  }

  /** The sections of the page. */
  sections() {
    const { segments, checkpoints, quarantine, companions, others, plots, bytes } = this.answer;
    return [
      section('Verification', this.#verification()),
      section(`Segments: ${formatCount(segments.length)} in ${formatBytes(bytes)}`, segments.length === 0
        ? noteLine('there is no segment yet') : [this.#legend(), this.#segments()]),
      section('Checkpoints', this.#checkpoints(checkpoints)),
      section('Compaction', this.#compaction()),
      segments.length === 0 ? '' : section('Compression and write amplification', this.#plots(plots)),
      companions.length === 0 ? '' : section('Companions', this.#companions(companions)),
      section('Other files', this.#others(others)),
      section('Quarantine', quarantine.length === 0 ? noteLine('nothing was set aside') : table('quarantine', fileColumns, quarantine)),
    ];
  }

  #legend() {
    const used = new Set(this.answer.segments.flatMap((segment) => segment.ranges.map((range) => range.kind)));
    const item = (className, name) => element('span', { class: 'legend-item' },
      element('span', { class: `swatch ${className}`, 'aria-hidden': 'true' }), name);
    return element('p', { class: 'legend' },
      Object.entries(rangeKinds).filter(([kind]) => used.has(kind)).map(([kind, name]) => item(`range-${kind}`, name)),
      item('covered-swatch', 'covered by a checkpoint'));
  }

  #segments() {
    const longest = Math.max(1, ...this.answer.segments.map((segment) => segment.bytes));
    return element('ol', { class: 'segments' }, this.answer.segments.map((segment) => this.#segment(segment, longest)));
  }

  #segment(segment, longest) {
    const isOpen = segment.name === this.parameters.get('segment');
    const href = this.studio.linkWith({ segment: isOpen ? null : segment.name, frame: null });
    const range = segment.events > 0 ? `, positions ${formatCount(segment.base)}–${formatCount(segment.last ?? segment.base)}` : '';
    return element('li', { class: 'segment' },
      element('div', { class: 'segment-head' },
        element('a', { href, 'aria-expanded': String(isOpen), role: 'button' }, content(segment.name)),
        noteText([
          segment.sealed ? 'sealed' : 'live', formatBytes(segment.bytes), `${countOf(segment.events, 'event')}${range}`,
          `compressed ${ratio(segment.lineBytes, segment.bytes - segment.preallocated)}`,
          ...(segment.compactedThrough == null ? [] : [`compacted through ${formatCount(segment.compactedThrough)}`]),
        ].join(' · '))),
      segmentBar(segment, longest, this.answer.checkpoints),
      noteLine(segmentSummary(segment)),
      segment.damage.map((damage) => this.#damage(damage)),
      isOpen ? element('div', { class: 'segment-detail' }, noteLine('reading the frames…')) : '');
  }

  #damage({ offset, code, detail, from, to }) {
    return element('p', { class: 'damage-text' }, element('strong', {}, `damage (${code})`),
      offset == null ? '' : ` at byte ${formatCount(offset)}`,
      from == null ? '' : `, positions ${formatCount(from)}–${to == null ? 'not known' : formatCount(to)}`, ': ', content(detail));
  }

  async #openSegment() {
    const name = this.parameters.get('segment');
    this.#showFrames();
    if (name === null || !this.answer.segments.some((segment) => segment.name === name)) return;
    try {
      this.#frames = await this.studio.source.segment(name);
      if (this.parameters.get('segment') === name) this.#showFrames();
    } catch (error) {
      this.studio.reportFailure(error);
    }
  }

  #showFrames() {
    const holder = this.body.querySelector('.segment-detail');
    if (!holder || this.#frames?.name !== this.parameters.get('segment')) return;
    setChildren(holder, this.#frameTable(this.#frames.frames));
    const row = holder.querySelector('.current-row');
    const frame = row ? `${this.#frames.name} ${this.parameters.get('frame')}` : null;
    if (frame !== null && frame !== this.#revealedFrame) row.scrollIntoView({ block: 'center' });
    this.#revealedFrame = frame;
  }

  #frameTable(frames) {
    const current = this.parameters.get('frame');
    const positions = ({ first, last }) => {
      const href = this.studio.link('timeline', { from: first, to: last, order: 'oldest' });
      return element('a', { href }, `${formatCount(first)}–${formatCount(last)}`);
    };
    const block = ({ offset, bytes, events }) => element('li', {},
      `from byte ${formatCount(offset)}, ${formatBytes(bytes)}, ${countOf(events, 'event')}`);
    const blocks = (frame) => {
      if (!frame.blocks?.length) return noteText('not listed');
      const left = frame.blocks.length - shownBlocks;
      return element('details', {}, element('summary', {}, countOf(frame.blocks.length, 'block')),
        element('ul', {}, frame.blocks.slice(0, shownBlocks).map(block)), left > 0 ? noteLine(`and ${formatCount(left)} more`) : '');
    };
    return table('frames', [
      { label: 'frame', className: 'number', cell: (frame) => formatCount(frame.number) },
      { label: 'offset', className: 'number', cell: (frame) => formatCount(frame.offset) },
      { label: 'bytes', className: 'number', cell: (frame) => formatBytes(frame.bytes) },
      { label: 'positions', cell: positions },
      { label: 'events', className: 'number', cell: (frame) => formatCount(frame.events) },
      { label: 'lines', className: 'number', cell: (frame) => formatBytes(frame.lineBytes) },
      { label: 'compression', className: 'number', cell: (frame) => ratio(frame.lineBytes, frame.bytes) },
      { label: 'blocks', cell: blocks },
    ], frames, (frame) => (String(frame.number) === current ? { class: 'current-row', 'aria-current': 'true' } : {}));
  }

  #checkpoints(checkpoints) {
    if (checkpoints.length === 0) return noteLine('no view is stored yet; views are folded from the first event');
    const after = (position) => (position == null ? '–' : formatCount(Math.max(0, (this.studio.log.last ?? 0) - position)));
    const written = (time) => (time == null ? '–' : [formatRelative(time), noteBlock(formatTime(time, this.studio.zone))]);
    const stored = ({ name, bytes }, index) => [index === 0 ? '' : ', ', content(name), noteText(` ${formatBytes(bytes)}`)];
    return table('checkpoints', [
      { label: 'slot', cell: ({ name }) => content(name) },
      { label: 'position', className: 'number', cell: ({ position }) => (position == null ? '–' : formatCount(position)) },
      { label: 'events after it', className: 'number', cell: ({ position }) => after(position) },
      { label: 'written', cell: ({ time }) => written(time) },
      { label: 'bytes', className: 'number', cell: ({ bytes }) => formatBytes(bytes) },
      { label: 'views', className: 'wrap', cell: ({ views }) => views.map(stored) },
      {
        label: 'problem', className: 'wrap',
        cell: ({ problem }) => (problem == null ? 'none' : element('span', { class: 'damage-text' }, content(problem))),
      },
    ], checkpoints);
  }

  #compaction() {
    const ask = this.#longButton('try what compaction would remove', 'reading…', async () => {
      this.#dryRun = await this.studio.source.compaction();
      announce(`${countOf(this.#dryRun.removable, 'event')} could be removed`);
    });
    if (this.#dryRun === null) return element('p', { class: 'actions' }, ask);
    const { removable, bytesFreeable, kept } = this.#dryRun;
    return [element('p', { class: 'actions' }, ask),
      element('p', {}, `${countOf(removable, 'event')} could be removed, which frees about ${formatBytes(bytesFreeable)} (logtool compact).`),
      table('why the rest is kept', [
        { label: 'kept because', cell: ({ reason }) => content(reason) },
        { label: 'events', className: 'number', cell: ({ events }) => formatCount(events) },
        { label: 'bytes of lines', className: 'number', cell: ({ bytes }) => formatBytes(bytes) },
      ], kept)];
  }

  #plots({ segments, amplification }) {
    const compression = segments.length === 0 ? '' : barPlot('compression by segment: bytes of lines for a byte on disk', segments,
      {
        name: ({ name }) => name,
        value: ({ lineBytes, bytes }) => (bytes > 0 ? lineBytes / bytes : 0),
        format: ({ lineBytes, bytes }) => ratio(lineBytes, bytes),
      });
    const { types } = this.studio.log;
    const byType = types.length === 0 ? '' : barPlot('bytes of lines by type', types,
      { name: ({ name }) => name, value: ({ bytes }) => bytes, format: ({ bytes }) => formatBytes(bytes) });
    const written = amplification.length < 2 ? '' : linePlot('write amplification: bytes written for a byte of lines', amplification,
      { name: 'position', value: ({ position }) => position, format: ({ position }) => formatCount(position) },
      [{ name: 'written per byte', value: ({ written: bytes, lines }) => (lines > 0 ? bytes / lines : 0), format: (value) => value.toFixed(2) }]);
    return element('div', { class: 'plots' }, compression, byType, written);
  }

  #companions(companions) {
    return table('companions', [
      { label: 'companion', cell: ({ companion }) => content(companion) },
      { label: 'spool', cell: ({ name }) => content(name) },
      { label: 'events', className: 'number', cell: ({ events }) => formatCount(events) },
      { label: 'bytes', className: 'number', cell: ({ bytes }) => formatBytes(bytes) },
      { label: 'state', className: 'wrap', cell: ({ state, reason }) => (reason == null ? state : [state, ': ', content(reason)]) },
    ], companions);
  }

  #others(others) {
    return table('other files', [
      ...fileColumns,
      { label: 'what it is', cell: ({ what }) => otherFileNames[what] ?? what },
    ], others);
  }

  #verification() {
    const verify = this.#longButton('verify the whole log', 'verifying…', async () => {
      this.#findings = await this.studio.source.verify();
      announce(countOf(this.#findings.findings.length, 'finding'));
    });
    return [element('p', { class: 'actions' }, verify), this.#findings === null ? '' : this.#findingList()];
  }

  // A button for an answer that takes a read of the whole log.
  #longButton(label, running, ask) {
    const result = button(label, async () => {
      result.disabled = true;
      result.textContent = running;
      try {
        await ask();
      } catch (error) {
        this.studio.reportFailure(error);
      }
      this.fill();
    });
    return result;
  }

  // A segment is a link to its frames. A checkpoint has none.
  #fileLink(name) {
    if (!this.answer.segments.some((segment) => segment.name === name)) return content(name);
    return element('a', { href: this.studio.linkWith({ segment: name, frame: null }) }, content(name));
  }

  #findingList() {
    const { findings, notes, events, segments } = this.#findings;
    const position = ({ from, to }) => (from == null ? '–' : `${formatCount(from)}–${to == null ? 'not known' : formatCount(to)}`);
    const summary = facts([['read', `${countOf(events, 'event')} in ${countOf(segments, 'segment')}`],
      ['findings', findings.length === 0 ? '● none: every byte is as it was written' : `■ ${formatCount(findings.length)}`]]);
    return [summary, notes.map((text) => noteLine('note: ', content(text))),
      findings.length === 0 ? '' : table('findings', [
        { label: 'file', cell: ({ segment }) => this.#fileLink(segment) },
        { label: 'byte', className: 'number', cell: ({ offset }) => (offset == null ? '–' : formatCount(offset)) },
        { label: 'positions', cell: position },
        { label: 'code', cell: ({ code }) => element('code', {}, content(code)) },
        { label: 'what', className: 'wrap', cell: ({ detail }) => content(detail) },
      ], findings)];
  }
}

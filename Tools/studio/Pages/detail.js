// The panel of one event: its facts, JSON, location on disk, causes and effects, and its story.
import { button, content, copyButton, element, facts, noteLine, noteText, setChildren } from './dom.js';
import { isCancelled } from './failure.js';
import { jsonView } from './json.js';
import { statusMark } from './status.js';
import { formatBytes, formatCount, formatRelative, formatTime } from './text.js';

const subjectEvents = 8;

/** The panel of the selected event. */
export class EventDetail {
  #studio;
  #request = null;
  #position = null;
  #fingerprint = null; // of the shown answer
  #storyHolder = null;
  #body = element('div', { class: 'detail-body' });
  #title = element('h2', { tabindex: '-1' }, 'event');

  constructor(studio, onClose) {
    this.#studio = studio;
    this.element = element('aside', { class: 'detail', hidden: true, 'aria-label': 'the selected event' },
      element('div', { class: 'detail-head' }, this.#title,
        button('×', onClose, { class: 'quiet close', 'aria-label': 'close the event (Escape)' })),
      this.#body);
  }

  /** Moves the focus into the panel. */
  focus() {
    this.#title.focus();
  }

  /** Closes the panel. */
  hide() {
    this.#request?.abort();
    this.#position = null;
    this.element.hidden = true;
  }

  /** Shows the event at a position. */
  async show(position) {
    if (position === this.#position) return;
    this.#request?.abort();
    this.#request = new AbortController();
    this.#position = position;
    this.#fingerprint = null;
    this.#body.scrollTop = 0;
    await this.refresh();
  }

  /** Loads the shown event anew, for example when its status may have changed. */
  async refresh() {
    if (this.#position === null) return;
    const { signal } = this.#request;
    this.element.hidden = false;
    this.#title.textContent = `event ${formatCount(this.#position)}`;
    try {
      const answer = await this.#studio.source.event(this.#position, signal);
      const { row, place, causes, effects } = answer;
      const related = await this.#loadRelated(row, signal);
      const fingerprint = JSON.stringify([row, place, causes, effects, related, this.#studio.zone]);
      // What the reader has opened and scrolled stays unless there is something new.
      if (signal.aborted || fingerprint === this.#fingerprint) return;
      this.#fingerprint = fingerprint;
      this.#fill(answer, related);
      await this.#loadStory(row, signal);
    } catch (error) {
      if (isCancelled(error)) return;
      this.#fingerprint = null;
      setChildren(this.#body, element('p', { class: 'failure' }, error.message), error.remedy ? element('p', {}, error.remedy) : '');
    }
  }

  #fill({ row, event, eventText, place, causes, effects }, related) {
    const zone = this.#studio.zone;
    this.#storyHolder = element('div', { class: 'story' }, noteLine('the story is being read…'));
    setChildren(this.#body,
      element('p', { class: 'detail-type' }, content(row.type), ' ', statusMark(row.status)),
      facts([
        ['time', element('span', {}, formatTime(row.time, zone), noteText(` ${formatRelative(row.time)}`))],
        ['subject', row.subject == null ? null : this.#filterLink('subject', row.subject)],
        ['lane', this.#filterLink('lane', row.lane)],
        ['type', this.#filterLink('type', row.type)],
        ['id', element('span', {}, element('code', {}, content(row.id)), copyButton('copy', () => row.id))],
        ['source', element('span', {}, element('code', {}, content(row.source)), row.own ? ' this device' : ' another device')],
        ['sequence', formatCount(row.sequence)],
        ['bytes', formatBytes(row.bytes)],
      ]),
      this.#stateLinks(row.position),
      element('h3', {}, 'Why'), this.#storyHolder,
      this.#related(row, related), this.#links('Causes', causes), this.#links('Effects', effects),
      element('h3', {}, 'JSON', copyButton('copy the line', () => eventText),
        event?.data === undefined ? '' : copyButton('copy the data', () => JSON.stringify(event.data, null, 2))),
      jsonView(eventText),
      element('h3', {}, 'On disk'), this.#place(place));
  }

  #filterLink(name, value) {
    const href = this.#studio.link('timeline', { [name]: value, event: this.#position });
    return element('a', { href, title: `show all events with this ${name}` }, content(value));
  }

  #stateLinks(position) {
    const href = (at) => this.#studio.link('views', { ...this.#studio.viewParameters(), at });
    const link = (label, at) => element('a', { class: 'button', href: href(at) }, label);
    return element('p', { class: 'actions' },
      position > 1 ? link('state before this event', position - 1) : '', link('state after it', position));
  }

  async #loadStory(row, signal) {
    const holder = this.#storyHolder;
    const story = await this.#studio.source.story(row.position, signal);
    const zone = this.#studio.zone;
    const steps = story.steps.map((step) => element('li', {},
      element('span', { class: 'step-what' }, step.what), ' ', content(step.detail),
      noteText(step.time == null ? '' : ` ${formatTime(step.time, zone)}`,
        step.position == null || step.position === row.position ? '' : element('span', {}, ' · ', this.#eventLink(step.position)))));
    setChildren(holder, element('ol', {}, steps),
      element('p', { class: 'now' }, element('strong', {}, 'now '), content(story.detail ?? story.status ?? '')));
  }

  /** The newest events with the subject of an event: what became of a note is often in another event. */
  async #loadRelated({ subject }, signal) {
    if (subject == null) return { total: 0, rows: [] };
    try {
      const { total, rows } = await this.#studio.source.events(new URLSearchParams({ subject }), 'newest', 0, subjectEvents, signal);
      return { total, rows };
    } catch (error) {
      if (isCancelled(error)) throw error;
      return { total: 0, rows: [] };
    }
  }

  #related({ position, subject }, { total, rows }) {
    if (total < 2) return '';
    const zone = this.#studio.zone;
    const items = rows.map((row) => element('li', {},
      row.position === position ? element('strong', {}, 'this event') : this.#eventLink(row.position), ' ', content(row.type), ' ',
      statusMark(row.status), noteText(row.own ? '' : ' from another device', ` ${formatTime(row.time, zone)}`)));
    const href = this.#studio.link('timeline', { subject, event: position });
    const rest = total > rows.length ? element('li', {}, element('a', { href }, `all ${formatCount(total)} events`)) : '';
    return [element('h3', {}, 'Same subject'), element('ul', { class: 'links' }, items, rest)];
  }

  #eventLink(position) {
    const href = this.#studio.linkWith({ event: position });
    return element('a', { href }, `event ${formatCount(position)}`);
  }

  #links(title, links) {
    if (links.length === 0) return '';
    const zone = this.#studio.zone;
    return [element('h3', {}, title), element('ul', { class: 'links' }, links.map((link) => element('li', {},
      element('span', { class: 'relation' }, link.relation), ' ',
      link.position == null ? element('code', {}, content(link.id)) : this.#eventLink(link.position),
      link.type == null ? noteText(' not in this log') : [' ', content(link.type)],
      link.subject == null ? '' : [' ', content(link.subject)],
      link.detail == null ? '' : noteText(' ', content(link.detail)),
      link.time == null ? '' : noteText(` ${formatTime(link.time, zone)}`))))].flat();
  }

  #place(place) {
    if (place == null) return noteLine('its location is not known here');
    const { segment, sealed, frame, frameOffset, frameBytes, block, blockOffset, blockBytes, lineOffset, lineBytes } = place;
    const href = this.#studio.link('files', { segment, frame });
    return facts([
      ['segment', element('span', {}, element('a', { href }, content(segment)), sealed ? ' sealed' : ' live')],
      ['frame', `${formatCount(frame)}, from byte ${formatCount(frameOffset)}${frameBytes == null ? '' : `, ${formatBytes(frameBytes)}`}`],
      ['block', `${formatCount(block)}, from byte ${formatCount(blockOffset)}, ${formatBytes(blockBytes)}`],
      ['line', `from byte ${formatCount(lineOffset)} of the frame's plaintext, ${formatBytes(lineBytes)}`],
    ]);
  }
}

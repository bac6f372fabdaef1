// Builds the page's elements. Content of a log enters the page here, as text nodes only.
import { visibleRuns } from './text.js';

const svgNamespace = 'http://www.w3.org/2000/svg';

function applyProperties(target, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) target.addEventListener(event, listener);
    } else if (name === 'style') {
      // Through the CSSOM: the content security policy refuses style attributes.
      for (const [property, setting] of Object.entries(value)) target.style.setProperty(property, setting);
    } else if (name === 'value') {
      target.value = value;
    } else {
      target.setAttribute(name, value === true ? '' : value);
    }
  }
}

function presentNodes(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false && child !== '');
}

function identityOf(target) {
  return `${target.tagName} ${target.getAttribute('aria-label') ?? target.textContent}`;
}

/**
 * Puts other children into an element; arrays are flattened, null and '' stand for nothing.
 * The focus, and what is scrolled inside, stay where they were as far as the new children have the same.
 */
export function setChildren(target, ...children) {
  const focused = target.contains(document.activeElement) && target !== document.activeElement ? document.activeElement : null;
  const regions = () => Array.from(target.querySelectorAll('[role="region"][aria-label]'));
  const scrolled = new Map(regions().map((region) => [identityOf(region), region.scrollTop]));
  target.replaceChildren(...presentNodes(children));
  for (const region of regions()) region.scrollTop = scrolled.get(identityOf(region)) ?? 0;
  if (focused === null || focused.isConnected) return;
  const identity = identityOf(focused);
  const successor = Array.from(target.querySelectorAll(focused.tagName)).find((candidate) => identityOf(candidate) === identity);
  successor?.focus({ preventScroll: true });
}

/** Creates an HTML element. `properties` are attributes, `on` (listeners), `style` (CSS properties) and `value`. */
export function element(name, properties = {}, ...children) {
  const created = document.createElement(name);
  applyProperties(created, properties);
  created.append(...presentNodes(children));
  return created;
}

/** Creates an SVG element. */
export function svgElement(name, properties = {}, ...children) {
  const created = document.createElementNS(svgNamespace, name);
  applyProperties(created, properties);
  created.append(...presentNodes(children));
  return created;
}

/** A button with a listener for its click. */
export function button(label, onClick, properties = {}) {
  return element('button', { type: 'button', ...properties, on: { click: onClick } }, label);
}

/** Nodes that show text of a log; invisible characters are escapes in marked spans. */
export function contentNodes(text) {
  return visibleRuns(text).map((run) => (run.hidden ? element('span', { class: 'escape' }, run.text) : run.text));
}

/** Text of a log, isolated, so that its direction cannot reorder what stands around it. */
export function content(text) {
  return element('bdi', {}, contentNodes(String(text ?? '')));
}

/** Shows a message in the page's live region, which screen readers read out. */
export function announce(message) {
  const region = document.getElementById('announcer');
  // The same message twice is read twice only if the region changes in between.
  region.textContent = '';
  setTimeout(() => { region.textContent = message; }, 30);
}

/** A button that puts `text()` on the clipboard. */
export function copyButton(label, text) {
  const created = button(label, async () => {
    try {
      await navigator.clipboard.writeText(text());
      announce('copied');
      created.classList.add('done');
      setTimeout(() => created.classList.remove('done'), 1500);
    } catch {
      announce('the browser does not allow to copy here; select the text instead');
    }
  }, { class: 'quiet copy' });
  return created;
}

/** Text beside the main matter, within a line. */
export function noteText(...children) {
  return element('span', { class: 'note' }, children);
}

/** Text beside the main matter, on a line of its own in a cell. */
export function noteBlock(...children) {
  return element('div', { class: 'note' }, children);
}

/** A paragraph beside the main matter. */
export function noteLine(...children) {
  return element('p', { class: 'note' }, children);
}

/** A list of facts: `[name, value]` pairs; pairs without a value are left out. */
export function facts(pairs) {
  return element('dl', { class: 'facts' }, pairs
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))));
}

/** A section with a heading. */
export function section(title, ...children) {
  return element('section', { class: 'section' }, element('h2', {}, title), ...children);
}

/** A call of `action` that happens `milliseconds` after the last request for it. */
export function debounce(action, milliseconds) {
  let timer = null;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), milliseconds);
  };
}

/** A function that starts an asynchronous action at once, and again after its end if it was called meanwhile. */
export function oneAtATime(action) {
  let isRunning = false;
  let isWanted = false;
  return async () => {
    isWanted = true;
    if (isRunning) return;
    isRunning = true;
    try {
      while (isWanted) {
        isWanted = false;
        await action();
      }
    } finally {
      isRunning = false;
    }
  };
}

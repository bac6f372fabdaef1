// Shows JSON text as coloured, indented text. It works on the text itself, so that numbers keep their digits.
import { button, contentNodes, element } from './dom.js';
import { formatBytes, formatCount, visibleText } from './text.js';

const maximumValue = 64 * 1024;
// The browser lays out only the parts that are on the screen.
const partLength = 8 * 1024;
const linesAtOnce = 2_000;
const space = /\s*/y;
const scalar = /[^\s"[\]{},:]+/y;

function matchAt(pattern, text, start) {
  pattern.lastIndex = start;
  return pattern.exec(text)?.[0] ?? '';
}

/** The end of the string that starts at `start`. A regular expression would exhaust its stack on 4 MiB. */
function endOfString(text, start) {
  for (let quote = text.indexOf('"', start + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (text[quote - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 0) return quote + 1;
  }
  return text.length;
}

function* tokensOf(text) {
  let start = matchAt(space, text, 0).length;
  while (start < text.length) {
    const first = text[start];
    let kind = 'punctuation';
    let end = start + 1;
    if (first === '"') {
      kind = 'string';
      end = endOfString(text, start);
    } else if (!'[]{},:'.includes(first)) {
      kind = /[-0-9]/.test(first) ? 'number' : 'word';
      end = start + matchAt(scalar, text, start).length;
    }
    yield { kind, value: text.slice(start, end), end };
    start = end + matchAt(space, text, end).length;
  }
}

function nextPunctuation(text, start) {
  return text[start + matchAt(space, text, start).length] ?? '';
}

/** The lines of indented JSON, each `{ depth, tokens }`, made as they are asked for. */
function* linesOf(text) {
  let depth = 0;
  let tokens = [];
  for (const token of tokensOf(text)) {
    const following = nextPunctuation(text, token.end);
    if (token.kind === 'string' && following === ':') token.kind = 'member';
    if (token.value === '}' || token.value === ']') {
      const opened = tokens.at(-1)?.value;
      if (opened === '{' || opened === '[') {
        tokens.push(token); // an empty object or array stays on its line
        depth -= 1;
        continue;
      }
      if (tokens.length > 0) yield { depth, tokens };
      depth -= 1;
      tokens = [token];
    } else if (token.value === ',' && token.kind === 'punctuation') {
      tokens.push(token);
      yield { depth, tokens };
      tokens = [];
    } else if (token.value === '{' || token.value === '[') {
      tokens.push(token);
      if (following !== '}' && following !== ']') {
        yield { depth, tokens };
        tokens = [];
      }
      depth += 1;
    } else {
      tokens.push(token);
    }
  }
  if (tokens.length > 0) yield { depth, tokens };
}

/** The text in parts of at most `partLength`; a cut does not separate the halves of a surrogate pair. */
function partsOf(text, start, end) {
  const parts = [];
  for (let from = start; from < end;) {
    let to = Math.min(end, from + partLength);
    if (to < text.length && /[\udc00-\udfff]/.test(text[to])) to += 1;
    parts.push(text.slice(from, to));
    from = to;
  }
  return parts;
}

function longValue(value, className) {
  const part = (nodes) => element('bdi', { class: 'json-part' }, nodes);
  const shownParts = partsOf(value, 0, maximumValue);
  const holder = element('span', {}, shownParts.map((text) => part(contentNodes(text))));
  const more = button(`show all ${formatBytes(value.length)}`, () => {
    // Without a span for each escape: a long hostile string would make millions.
    const shownLength = shownParts.reduce((sum, text) => sum + text.length, 0);
    holder.append(...partsOf(value, shownLength, value.length).map((text) => part(visibleText(text))));
    more.remove();
  }, { class: 'quiet' });
  return element('span', { class: className }, holder, more);
}

function tokenNode(token) {
  const className = `json-${token.kind}`;
  if (token.value.length > maximumValue) return longValue(token.value, className);
  if (token.kind === 'punctuation') return token.value === ':' ? ': ' : visibleText(token.value);
  return element('span', { class: className }, element('bdi', {}, contentNodes(token.value)));
}

function lineNode(line) {
  return element('div', { class: 'json-line', style: { '--depth': String(line.depth) } }, line.tokens.map(tokenNode));
}

/** An element that shows JSON text, indented; long values and long documents are shown in parts. */
export function jsonView(text) {
  const lines = linesOf(text);
  const body = element('div');
  const view = element('div', { class: 'json', dir: 'ltr', tabindex: '0', role: 'region', 'aria-label': 'JSON' }, body);
  const showMore = () => {
    for (let count = 0; count < linesAtOnce; count += 1) {
      const { value, done } = lines.next();
      if (done) return;
      body.append(lineNode(value));
    }
    const more = button(`show ${formatCount(linesAtOnce)} more lines`, () => {
      more.remove();
      showMore();
    }, { class: 'quiet' });
    view.append(more);
  };
  showMore();
  return view;
}

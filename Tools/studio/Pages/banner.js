// What the page says about the state of the log and of the server, above the tabs.
import { content, element } from './dom.js';
import { formatCount } from './text.js';

const problemTitles = {
  empty: 'The log has no events yet',
  damaged: 'The log is damaged',
  newer: 'The log has a newer format',
  noLog: 'There is no log here',
  notALog: 'The folder is no log',
  wrongAccount: 'The log is of another account',
  io: 'The log cannot be read',
};

const problemHints = {
  empty: () => 'The page follows the log: events appear as soon as they are recorded.',
  damaged: ({ last }) => {
    const shown = last == null ? 'No event can be shown' : `Everything before the damage is shown, through position ${formatCount(last)}`;
    return `${shown}. The Files tab marks the damage.`;
  },
  wrongAccount: ({ account }) => `${account == null ? 'It names no account' : `It is the log of ${account}`}. Nothing else of it is shown.`,
  noLog: () => 'The page waits for it: a log appears when an app opens one here, or when `logtool import` makes one.',
  io: () => 'The page tries again by itself.',
};

const problemRemedies = {
  damaged: '`logtool repair` shows what can be saved; it changes nothing without --yes.',
  newer: 'Open it with a logtool of the release that writes it, or a later one.',
  notALog: 'Name the folder that holds the segments.',
  wrongAccount: 'Name the folder of the account that you look for, or start `logtool studio` without --account.',
};

const grave = new Set(['damaged', 'newer', 'notALog', 'wrongAccount', 'io']);

function commandParts(text) {
  // Parts between backticks are commands.
  return text.split('`').map((part, index) => (index % 2 === 1 ? element('code', {}, content(part)) : content(part)));
}

function banner(kind, title, ...paragraphs) {
  return element('div', { class: `banner banner-${kind}` },
    element('strong', {}, kind === 'grave' ? '■ ' : '○ ', title),
    paragraphs.filter(Boolean).map((text) => element('p', {}, commandParts(text))));
}

/** The banner of the log's problem; null if it has none. */
export function problemBanner(log) {
  if (log.problem == null) return null;
  const { code, message, remedy } = log.problem;
  const hint = problemHints[code]?.(log);
  const kind = grave.has(code) ? 'grave' : 'calm';
  return banner(kind, problemTitles[code] ?? 'The log has a problem', message, hint, remedy ?? problemRemedies[code]);
}

/** The banner of a server that does not answer, or refuses the page. */
export function failureBanner(error) {
  if (error.code === 'gone') {
    return banner('grave', 'The server has stopped', 'What is shown is the last answer. The page tries again every few seconds.',
      'Start it again with `logtool studio`, and open the address that it prints.');
  }
  return banner('grave', 'The request failed', error.message, error.remedy);
}

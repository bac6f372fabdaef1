// The keyboard: one table of keys, used for the shortcuts and for the page of help.
import { element } from './dom.js';
import { openDialog } from './table.js';

const sequenceTime = 1_000;
const typingElements = 'input:not([type="range"]):not([type="checkbox"]):not([type="button"]), textarea, select, [contenteditable]';

const elsewhere = [
  [['↑', '↓', 'Page Up', 'Page Down', 'Home', 'End'], 'move in a list or on a slider'],
  [['Enter'], 'open the active row'],
  [['Tab', 'Shift Tab'], 'go to the next or previous control'],
  [['Space'], 'press a button, open a menu'],
  [['←', '→'], 'on a handle of the histogram: change the selected time'],
];

function keyNames(keys) {
  return keys.map((key, index) => [index === 0 ? '' : ' ', element('kbd', {}, key)]);
}

function openHelp(shortcuts) {
  const rows = [...shortcuts.map(({ keys, meaning }) => [keys.split(' '), meaning]), ...elsewhere];
  openDialog('Keyboard', element('dl', { class: 'keys' }, rows.map(([keys, meaning]) => element('div', {},
    element('dt', {}, keyNames(keys)), element('dd', {}, meaning)))));
}

/**
 * Listens for shortcuts: `{ keys, meaning, action }`, where `keys` is a key or two after each other ("g t").
 * None fires while the reader types in a field or a dialog is open. Returns a function that opens the help.
 */
export function listenForKeys(shortcuts) {
  const help = () => openHelp(all);
  const all = [...shortcuts, { keys: '?', meaning: 'this help', action: help }];
  let first = null;
  let firstTime = 0;
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (document.querySelector('dialog[open]') || event.target.closest(typingElements)) return;
    const isSecond = first !== null && event.timeStamp - firstTime < sequenceTime;
    const pressed = isSecond ? `${first} ${event.key}` : event.key;
    const shortcut = all.find(({ keys }) => keys === pressed);
    first = null;
    if (shortcut) {
      event.preventDefault();
      shortcut.action();
    } else if (all.some(({ keys }) => keys.startsWith(`${event.key} `))) {
      first = event.key;
      firstTime = event.timeStamp;
    }
  });
  return help;
}

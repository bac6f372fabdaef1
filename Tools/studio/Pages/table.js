// Tables of moderate length, shown in parts, and dialogs.
import { button, element } from './dom.js';
import { countOf } from './text.js';

const rowsAtOnce = 100;

// How many rows of each table the reader has asked for, so that a table that is drawn anew keeps its length.
const shownCounts = new Map();

/**
 * A table with a caption for screen readers. `columns` are `{ label, className, cell(row) }`;
 * rows after the first hundred come on request.
 */
export function table(caption, columns, rows, rowProperties = () => ({})) {
  const body = element('tbody');
  const headings = columns.map(({ label, className }) => element('th', { scope: 'col', class: className }, label));
  const holder = element('div', { class: 'table-holder', tabindex: '0', role: 'region', 'aria-label': caption },
    element('table', {}, element('caption', { class: 'visually-hidden' }, caption),
      element('thead', {}, element('tr', {}, headings)), body));
  let shown = 0;
  const show = (count) => {
    const next = rows.slice(shown, count);
    shown += next.length;
    shownCounts.set(caption, count);
    body.append(...next.map((row) => element('tr', rowProperties(row),
      columns.map((column) => element('td', { class: column.className }, column.cell(row))))));
    if (shown >= rows.length) return;
    const more = button(`show more of ${countOf(rows.length, 'row')}`, () => {
      more.remove();
      show(shown + rowsAtOnce);
    }, { class: 'quiet' });
    holder.append(more);
  };
  show(shownCounts.get(caption) ?? rowsAtOnce);
  return holder;
}

/** Opens a modal dialog that Escape closes; returns it. It removes itself when it is closed. */
export function openDialog(title, ...children) {
  const heading = element('h2', {}, title);
  const dialog = element('dialog', { 'aria-label': title, on: { close: () => dialog.remove() } },
    element('div', { class: 'dialog-head' }, heading,
      button('×', () => dialog.close(), { class: 'quiet close', 'aria-label': 'close' })),
    ...children);
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Asks the reader once whether an action is to be done; true if so. */
export function confirmed(title, label, ...children) {
  return new Promise((resolve) => {
    let answer = false;
    const dialog = openDialog(title, ...children, element('p', { class: 'actions' },
      button(label, () => {
        answer = true;
        dialog.close();
      }, { class: 'primary' }),
      button('cancel', () => dialog.close(), { autofocus: true })));
    dialog.addEventListener('close', () => resolve(answer));
  });
}

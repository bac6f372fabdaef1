// Two positions of a view compared: the rows added, removed and changed, with the event that caused each.
import { button, content, contentNodes, element, noteBlock, noteText } from './dom.js';
import { countOf, formatCount, formatTime } from './text.js';

const changesAtOnce = 50;
const changeSigns = { added: '+', removed: '−', changed: '~' };

/** A value of a row as text: a string as it is, anything else as JSON. */
export function cellText(value) {
  if (value === null || value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function memberChange(name, before, after) {
  const side = (kind, value) => element(kind, {}, content(cellText(value)));
  return element('div', { class: 'member' }, element('span', { class: 'member-name' }, contentNodes(name)), ' ',
    before === undefined ? '' : side('del', before), before !== undefined && after !== undefined ? ' → ' : '',
    after === undefined ? '' : side('ins', after));
}

function changedMembers({ change, before, after, members }) {
  const names = change === 'changed' ? members : Object.keys(after ?? before ?? {});
  return names.map((name) => memberChange(name, before?.[name], after?.[name]));
}

/** The panel of a comparison. `load(offset, limit)` answers the changes. */
export function comparison(studio, answer, load) {
  const body = element('tbody');
  const cause = (event) => (event == null ? noteText('not known') : [
    element('a', { href: studio.link('timeline', { event: event.position }) }, `event ${formatCount(event.position)}`), ' ',
    content(event.type), event.subject == null ? '' : [' ', content(event.subject)],
    noteBlock(formatTime(event.time, studio.zone))]);
  const addRows = (rows) => body.append(...rows.map((row) => element('tr', { class: `change-${row.change}` },
    element('td', {}, element('span', { class: 'change-sign', 'aria-hidden': 'true' }, changeSigns[row.change]), row.change),
    element('td', {}, content(row.key)), element('td', {}, changedMembers(row)), element('td', {}, cause(row.cause)))));
  addRows(answer.rows);
  const total = answer.added + answer.removed + answer.changed;
  const more = button('show more changes', async () => {
    more.disabled = true;
    try {
      const next = await load(body.children.length, changesAtOnce);
      addRows(next.rows);
    } catch (error) {
      studio.reportFailure(error);
    }
    more.disabled = false;
    more.hidden = body.children.length >= total;
  }, { class: 'quiet' });
  more.hidden = answer.rows.length >= total;
  const range = `from ${formatCount(answer.from)} to ${formatCount(answer.to)}`;
  const counts = `${countOf(answer.added, 'row')} added, ${formatCount(answer.removed)} removed, ${formatCount(answer.changed)} changed`;
  const headings = ['change', 'row', 'members', 'caused by'].map((label) => element('th', { scope: 'col' }, label));
  return element('section', { class: 'comparison', 'aria-label': 'comparison' },
    element('h2', {}, 'Changes'), element('p', { role: 'status' }, `${range}: ${counts}`),
    total === 0 ? '' : element('div', { class: 'table-holder', tabindex: '0', role: 'region', 'aria-label': 'changes' },
      element('table', { class: 'changes' }, element('thead', {}, element('tr', {}, headings)), body)),
    more);
}

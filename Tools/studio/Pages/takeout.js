// The dialog that takes data out: downloads of the filtered events, commands that give the same, the JSON address.
import { button, content, copyButton, element, noteLine } from './dom.js';
import { filterOf } from './route.js';
import { openDialog } from './table.js';
import { countOf } from './text.js';

const commandOptions = { from: '--from', to: '--to', type: '--type', subject: '--subject' };

function shellQuoted(text) {
  return /^[A-Za-z0-9_./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The `logtool inspect` command for a filter; null if its options cannot express the filter. */
function inspectCommand(folder, filter) {
  const options = [];
  for (const [name, value] of filter) {
    if (!(name in commandOptions) || filter.getAll(name).length > 1) return null;
    options.push(commandOptions[name], shellQuoted(value));
  }
  return ['logtool inspect', shellQuoted(folder), '--events', ...options].join(' ');
}

function curlCommand(address) {
  return `curl --header 'Authorization: Bearer …' ${shellQuoted(address)}`;
}

/** Downloads the events that pass a filter. */
async function save(studio, filter, format) {
  try {
    const address = URL.createObjectURL(await studio.source.download(filter, format));
    element('a', { href: address, download: `events.${format}` }).click();
    // The browser has the file's content once the download has begun.
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
  } catch (error) {
    studio.reportFailure(error);
  }
}

function command(label, text) {
  return element('div', {}, element('h3', {}, label, copyButton('copy', () => text)),
    element('pre', { tabindex: '0', role: 'region', 'aria-label': label }, content(text)));
}

/** Opens the dialog for the filter of the timeline's parameters and the address of the present screen. */
export function openTakeout(studio, parameters, address) {
  const filter = filterOf(parameters);
  const isServed = studio.source.form === 'served';
  const download = (format) => button(`events as ${format}`, () => save(studio, filter, format), { class: 'primary' });
  const inspect = inspectCommand(studio.log.folder ?? 'LOG', filter);
  const selected = filter.size === 0 ? `all ${countOf(studio.log.events, 'event')}` : 'the events that pass the filters of the timeline';
  openDialog('Data out',
    element('p', {}, `Downloads contain ${selected}.`),
    element('p', { class: 'actions' }, ['ndjson', 'csv'].map(download)),
    inspect === null
      ? noteLine('logtool inspect cannot express these filters; it knows one type, one subject and positions.')
      : command('with logtool', inspect),
    isServed ? [
      command('with curl', curlCommand(studio.source.address('export', [...filter, ['format', 'ndjson']]))),
      noteLine('Instead of … put the token in the address that logtool studio has printed.'),
      command('this screen as JSON', address)] : '');
}

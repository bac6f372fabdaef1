// The screen's state in the URL's fragment: `#timeline?type=daybook.note.added&event=17`.

/** The tabs, in the order of the navigation. */
export const tabNames = ['timeline', 'views', 'outbox', 'files'];

const filterNames = ['type', 'subject', 'lane', 'source', 'account', 'status', 'from', 'to', 'since', 'until', 'text'];

/** The tab and parameters of a fragment; an unknown tab is the timeline. */
export function parseFragment(fragment) {
  const text = fragment.replace(/^#/, '');
  const mark = text.indexOf('?');
  const tab = mark < 0 ? text : text.slice(0, mark);
  return {
    tab: tabNames.includes(tab) ? tab : 'timeline',
    parameters: new URLSearchParams(mark < 0 ? '' : text.slice(mark + 1)),
  };
}

/** The fragment of a tab and its parameters. */
export function formatFragment(tab, parameters) {
  const query = parameters.toString();
  return query === '' ? `#${tab}` : `#${tab}?${query}`;
}

/** A copy of the parameters with changes: null removes, an array stands several times. */
export function changedParameters(parameters, changes) {
  const changed = new URLSearchParams(parameters);
  for (const [name, value] of Object.entries(changes)) {
    changed.delete(name);
    if (Array.isArray(value)) value.forEach((item) => changed.append(name, item));
    else if (value !== null && value !== undefined && value !== '') changed.set(name, String(value));
  }
  return changed;
}

/** The parameters that select events, without those of the screen. */
export function filterOf(parameters) {
  const filter = new URLSearchParams();
  for (const name of filterNames) {
    for (const value of parameters.getAll(name)) if (value !== '') filter.append(name, value);
  }
  return filter;
}

/** The changes that remove every filter. */
export function withoutFilter() {
  return Object.fromEntries(filterNames.map((name) => [name, null]));
}

/** Shows a fragment: as a new entry of the history, or in place of the present one. */
export function navigate(fragment, replace) {
  if (fragment === location.hash) return;
  if (replace) location.replace(fragment);
  else location.hash = fragment;
}

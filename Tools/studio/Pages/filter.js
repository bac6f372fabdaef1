// The bar above the timeline: search, filters with their counts, order, and filters saved by name.
import { button, content, debounce, element, noteLine, setChildren } from './dom.js';
import { choiceMenu, menu } from './menu.js';
import { preference, setPreference } from './preferences.js';
import { filterOf, withoutFilter } from './route.js';
import { fieldTime, formatTime, timeOfField } from './text.js';

const searchDelay = 100;
const filterLabels = {
  type: 'type', subject: 'subject', lane: 'lane', source: 'source', account: 'account', status: 'status',
  from: 'from position', to: 'to position', since: 'since', until: 'until', text: 'text',
};

/** The filter bar. `onChange(changes, replace)` gets changes of the URL's parameters. */
export class FilterBar {
  #studio;
  #onChange;
  #parameters = new URLSearchParams();
  #search;
  #order;
  #chips = element('div', { class: 'chips', role: 'group', 'aria-label': 'filters in use' });

  constructor(studio, onChange) {
    this.#studio = studio;
    this.#onChange = onChange;
    const search = debounce(() => onChange({ text: this.#search.value }, true), searchDelay);
    this.#search = element('input', {
      type: 'search', class: 'search', placeholder: 'search in all events', 'aria-label': 'search text', spellcheck: 'false',
      autocomplete: 'off', on: { input: search },
    });
    const changeOrder = () => onChange({ order: this.#order.value === 'newest' ? null : this.#order.value });
    this.#order = element('select', { 'aria-label': 'order', on: { change: changeOrder } },
      element('option', { value: 'newest' }, 'newest first'), element('option', { value: 'oldest' }, 'oldest first'));
    this.element = element('div', { class: 'filter' },
      element('div', { class: 'toolbar', role: 'group', 'aria-label': 'filters' },
        this.#search,
        element('div', { class: 'filter-menus' },
          this.#choices('Type', 'type', 'types'), this.#choices('Status', 'status', 'statuses'),
          this.#choices('Source', 'source', 'sources'), this.#choices('Account', 'account', 'accounts'),
          menu('More filters', (panel) => this.#fillFields(panel)),
          menu('Saved', (panel) => this.#fillSaved(panel)),
          this.#order)),
      this.#chips);
  }

  /** Moves the focus into the search field. */
  focus() {
    this.#search.focus();
    this.#search.select();
  }

  /** Shows the filters of the URL. */
  show(parameters) {
    this.#parameters = parameters;
    const text = parameters.get('text') ?? '';
    if (document.activeElement !== this.#search) this.#search.value = text;
    this.#order.value = parameters.get('order') === 'oldest' ? 'oldest' : 'newest';
    const filter = filterOf(parameters);
    setChildren(this.#chips, ...Array.from(filter, ([name, value]) => this.#chip(name, value)));
    if (filter.size > 0) {
      this.#chips.append(button('clear all', () => {
        this.#search.value = '';
        this.#onChange(withoutFilter());
      }, { class: 'quiet' }));
    }
  }

  #choices(label, name, member) {
    const choices = () => this.#studio.log[member].map((choice) => ({ ...choice, note: choice.own ? 'this device' : null }));
    return choiceMenu(label, choices, () => this.#parameters.getAll(name), (names) => this.#onChange({ [name]: names }));
  }

  #chip(name, value) {
    const shown = name === 'since' || name === 'until' ? formatTime(value, this.#studio.zone) : value;
    const remove = () => {
      if (name === 'text') this.#search.value = '';
      this.#onChange({ [name]: this.#parameters.getAll(name).filter((other) => other !== value) });
    };
    return button([`${filterLabels[name]}: `, content(shown), element('span', { 'aria-hidden': 'true' }, ' ×')], remove,
      { class: 'chip', 'aria-label': `remove the filter ${filterLabels[name]}: ${shown}` });
  }

  #field(name, properties, read = (value) => value, write = (value) => value) {
    const field = element('input', {
      ...properties, value: write(this.#parameters.get(name) ?? ''), on: { change: () => this.#onChange({ [name]: read(field.value) }) },
    });
    return element('label', { class: 'field' }, filterLabels[name], field);
  }

  #fillFields(panel) {
    const zone = this.#studio.zone;
    const time = (name) => this.#field(name, { type: 'datetime-local', step: '0.001' },
      (value) => timeOfField(value, zone), (value) => fieldTime(value, zone));
    const position = (name) => this.#field(name, { type: 'number', min: '1', inputmode: 'numeric' });
    setChildren(panel,
      this.#field('subject', { type: 'text', spellcheck: 'false' }), this.#field('lane', { type: 'text', spellcheck: 'false' }),
      position('from'), position('to'), time('since'), time('until'),
      noteLine(zone === 'local' ? 'Times are local times.' : 'Times are in UTC.'));
  }

  #fillSaved(panel) {
    const saved = preference('filters', {});
    const rows = Object.entries(saved).map(([name, query]) => element('div', { class: 'saved' },
      button(content(name), () => {
        const parameters = new URLSearchParams(query);
        const changes = withoutFilter();
        for (const key of parameters.keys()) changes[key] = parameters.getAll(key);
        this.#search.value = parameters.get('text') ?? '';
        this.#onChange(changes);
      }, { class: 'quiet grow' }),
      button('×', () => {
        delete saved[name];
        setPreference('filters', saved);
        this.#fillSaved(panel);
      }, { class: 'quiet', 'aria-label': `delete the saved filter ${name}` })));
    const nameField = element('input', {
      type: 'text', placeholder: 'name', 'aria-label': 'name of the filter', maxlength: '60', required: true,
    });
    const form = element('form', {
      class: 'save',
      on: {
        submit: (event) => {
          event.preventDefault();
          setPreference('filters', { ...saved, [nameField.value]: filterOf(this.#parameters).toString() });
          this.#fillSaved(panel);
        },
      },
    }, nameField, element('button', { type: 'submit' }, 'save this filter'));
    setChildren(panel, ...rows, rows.length === 0 ? noteLine('no saved filters yet') : '', form);
  }
}

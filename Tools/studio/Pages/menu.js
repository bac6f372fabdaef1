// A menu that opens under its button: choices with counts, or any other content.
import { content, element, noteLine, noteText, setChildren } from './dom.js';
import { formatCount } from './text.js';

const manyChoices = 12;
const maximumChoices = 500;

/** A button with a panel under it. Escape, or a click elsewhere, closes it. `fill(panel)` runs when it opens. */
export function menu(label, fill) {
  const summary = element('summary', { class: 'button' }, label);
  const panel = element('div', { class: 'menu-panel' });
  const details = element('details', {
    class: 'menu',
    on: {
      toggle: () => {
        if (details.open) fill(panel);
        else panel.replaceChildren();
      },
      keydown: (event) => {
        if (event.key !== 'Escape' || !details.open) return;
        event.stopPropagation();
        details.open = false;
        summary.focus();
      },
    },
  }, summary, panel);
  document.addEventListener('pointerdown', (event) => {
    if (details.open && !details.contains(event.target)) details.open = false;
  });
  return details;
}

function choiceRow(choice, isChosen, onToggle) {
  const box = element('input', { type: 'checkbox', checked: isChosen, on: { change: () => onToggle(choice.name, box.checked) } });
  return element('label', { class: 'choice' }, box, content(choice.name),
    choice.note ? noteText(choice.note) : null,
    element('span', { class: 'number' }, formatCount(choice.events)));
}

/**
 * A menu of which several choices can be taken. `choices()` are `{ name, events, note }`,
 * `chosen()` the names taken at present; `onChange(names)` gets the new ones.
 */
export function choiceMenu(label, choices, chosen, onChange) {
  return menu(label, (panel) => {
    const taken = new Set(chosen());
    const all = choices();
    const known = new Set(all.map((choice) => choice.name));
    const missing = [...taken].filter((name) => !known.has(name)).map((name) => ({ name, events: 0 }));
    const list = element('div', { class: 'choices', role: 'group', 'aria-label': label });
    const show = (search) => {
      const found = [...missing, ...all].filter((choice) => choice.name.toLowerCase().includes(search.toLowerCase()));
      setChildren(list, ...found.slice(0, maximumChoices).map((choice) => choiceRow(choice, taken.has(choice.name), (name, isOn) => {
        if (isOn) taken.add(name);
        else taken.delete(name);
        onChange([...taken]);
      })));
      if (found.length === 0) list.append(noteLine('nothing to choose from'));
    };
    const search = element('input', {
      type: 'search', placeholder: 'find', 'aria-label': `find in ${label}`, on: { input: () => show(search.value) },
    });
    setChildren(panel, ...(all.length > manyChoices ? [search] : []), list);
    show('');
  });
}

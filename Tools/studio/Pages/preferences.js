// What the reader has chosen in this browser: theme and saved filters.

const preferencePrefix = 'daybook-studio.';

/** A stored choice; `fallback` if there is none or the browser stores nothing (as for some `file://` pages). */
export function preference(name, fallback) {
  try {
    const stored = localStorage.getItem(preferencePrefix + name);
    return stored === null ? fallback : JSON.parse(stored);
  } catch {
    return fallback;
  }
}

/** Stores a choice. A browser that stores nothing keeps it until the page is closed. */
export function setPreference(name, value) {
  try {
    localStorage.setItem(preferencePrefix + name, JSON.stringify(value));
  } catch {
    // The choice still counts for this page.
  }
}

// The data source of the served form: requests to `/api/…` of the server that sent the pages.
import { SourceFailure } from './failure.js';

const keyName = 'daybook-studio-key';
const keyWait = 300;

async function request(path, options) {
  try {
    return await fetch(path, { ...options, credentials: 'omit', cache: 'no-store' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new SourceFailure('gone', 'the server does not answer');
  }
}

async function bodyOf(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    return null;
  }
}

/** The failure that a refused request reports. */
function failureOf(response, body) {
  const { code, message, remedy, ...details } = body?.error ?? {};
  if (code) return new SourceFailure(code, message, remedy, details);
  return new SourceFailure('http', `the server answered with status ${response.status} and no reason`);
}

function storedKey() {
  try {
    return sessionStorage.getItem(keyName);
  } catch {
    return null;
  }
}

function storeKey(key) {
  try {
    sessionStorage.setItem(keyName, key);
  } catch {
    // The page has the key until it is loaded again.
  }
}

/** The key in the address, of which the address bar and the history keep nothing, or the one of an earlier load. */
async function keyOfPage() {
  const query = new URLSearchParams(location.search);
  const code = query.get('code');
  const key = query.get('token') ?? (code === null ? storedKey() : null);
  if (location.search !== '') history.replaceState(history.state, '', location.pathname + location.hash);
  return code === null ? key : keyForCode(code);
}

/** The key that the server gives for a code, once; null if the code is worthless. */
async function keyForCode(code) {
  const response = await request('/api/key', { method: 'POST', body: JSON.stringify({ code }) });
  return response.ok ? (await bodyOf(response))?.key ?? null : null;
}

/** The key of another tab; null if none answers. A tab that a link has opened has no address with the key. */
function keyOfOtherTab(channel) {
  return new Promise((resolve) => {
    channel.onmessage = ({ data }) => data.key && resolve(data.key);
    channel.postMessage({});
    setTimeout(() => resolve(null), keyWait);
  });
}

/**
 * The key that every request needs; null if the page has none. It is kept in the tab, because a cookie would be
 * sent to every port of this machine.
 */
async function findKey() {
  const channel = new BroadcastChannel(keyName);
  const key = await keyOfPage() ?? await keyOfOtherTab(channel);
  if (key !== null) storeKey(key);
  channel.onmessage = ({ data }) => {
    if (key !== null && !data.key) channel.postMessage({ key });
  };
  return key;
}

function pathOf(name, parameters) {
  const query = new URLSearchParams(parameters).toString();
  return query === '' ? `/api/${name}` : `/api/${name}?${query}`;
}

/** Asks the server. Every method takes an `AbortSignal` last, and throws `SourceFailure`. */
export class ServedSource {
  form = 'served';
  #key = findKey();

  /** The address of an answer as JSON. */
  address(name, parameters = {}) {
    return location.origin + pathOf(name, parameters);
  }

  /** Sends a request with the key. */
  async #request(path, options) {
    const key = await this.#key;
    const headers = key === null ? {} : { authorization: `Bearer ${key}` };
    const response = await request(path, { ...options, headers: { ...headers, ...options.headers } });
    if (!response.ok) throw failureOf(response, await bodyOf(response));
    return response;
  }

  async #get(name, parameters, signal) {
    return (await this.#request(pathOf(name, parameters), { signal })).json();
  }

  async #post(name, body) {
    const headers = { 'content-type': 'application/json' };
    return (await this.#request(pathOf(name, {}), { method: 'POST', headers, body: JSON.stringify(body) })).json();
  }

  log(signal) {
    return this.#get('log', {}, signal);
  }

  events(filter, order, offset, limit, signal) {
    return this.#get('events', [...filter, ['order', order], ['offset', offset], ['limit', limit]], signal);
  }

  async rank(filter, order, position, signal) {
    const { offset } = await this.#get('rank', [...filter, ['order', order], ['position', position]], signal);
    return offset;
  }

  histogram(filter, buckets, signal) {
    return this.#get('histogram', [...filter, ['buckets', buckets]], signal);
  }

  event(position, signal) {
    return this.#get(`events/${position}`, {}, signal);
  }

  story(position, signal) {
    return this.#get(`events/${position}/story`, {}, signal);
  }

  async find(id, signal) {
    const { position } = await this.#get('find', { id }, signal);
    return position;
  }

  views(signal) {
    return this.#get('views', {}, signal);
  }

  view(name, at, offset, limit, text, signal) {
    const parameters = { at, offset, limit };
    if (text !== '') parameters.text = text;
    return this.#get(`views/${encodeURIComponent(name)}`, parameters, signal);
  }

  marks(name, buckets, signal) {
    return this.#get(`views/${encodeURIComponent(name)}/marks`, { buckets }, signal);
  }

  async step(name, at, direction, signal) {
    const { position } = await this.#get(`views/${encodeURIComponent(name)}/step`, { at, to: direction }, signal);
    return position;
  }

  changes(name, from, to, offset, limit, signal) {
    return this.#get(`views/${encodeURIComponent(name)}/changes`, { from, to, offset, limit }, signal);
  }

  outbox(signal) {
    return this.#get('outbox', {}, signal);
  }

  dependents(id, signal) {
    return this.#get('outbox/dependents', { id }, signal);
  }

  decide(decision, body) {
    return this.#post(`outbox/${decision}`, body);
  }

  files(signal) {
    return this.#get('files', {}, signal);
  }

  segment(name, signal) {
    return this.#get(`files/${encodeURIComponent(name)}`, {}, signal);
  }

  compaction(signal) {
    return this.#get('compaction', {}, signal);
  }

  verify(signal) {
    return this.#get('verify', {}, signal);
  }

  /** The events that pass a filter, as a file in the browser: a link could not send the key. */
  async download(filter, format) {
    return (await this.#request(pathOf('export', [...filter, ['format', format]]), {})).blob();
  }
}

// The data source of the served form: requests to `/api/…` of the server that sent the pages.
import { SourceFailure } from './failure.js';

async function requestJSON(path, options) {
  let response;
  try {
    response = await fetch(path, { ...options, credentials: 'same-origin', cache: 'no-store' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new SourceFailure('gone', 'the server does not answer');
  }
  let body;
  try {
    body = await response.json();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    body = null;
  }
  if (response.ok && body !== null) return body;
  const { code, message, remedy, ...details } = body?.error ?? {};
  if (code) throw new SourceFailure(code, message, remedy, details);
  if (response.status === 401 || response.status === 403) {
    throw new SourceFailure('token', 'the page belongs to an earlier run of the server',
      'open the address that `logtool studio` has printed');
  }
  throw new SourceFailure('http', `the server answered with status ${response.status} and no reason`);
}

function pathOf(name, parameters) {
  const query = new URLSearchParams(parameters).toString();
  return query === '' ? `/api/${name}` : `/api/${name}?${query}`;
}

/** Asks the server. Every method takes an `AbortSignal` last, and throws `SourceFailure`. */
export class ServedSource {
  form = 'served';

  /** The address of an answer as JSON. */
  address(name, parameters = {}) {
    return location.origin + pathOf(name, parameters);
  }

  #get(name, parameters, signal) {
    return requestJSON(pathOf(name, parameters), { signal });
  }

  #post(name, body) {
    return requestJSON(pathOf(name, {}), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
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

  exportURL(filter, format) {
    return pathOf('export', [...filter, ['format', format]]);
  }
}

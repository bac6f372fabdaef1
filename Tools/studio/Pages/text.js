// Text for people: counts, bytes, times and durations, and characters that are invisible made visible.

const countFormat = new Intl.NumberFormat('en');
const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
const durationUnits = [['d', 86_400], ['h', 3_600], ['min', 60], ['s', 1]];

// Controls, format characters (bidirectional marks, zero widths, tags), separators of lines and
// paragraphs, lone surrogates, and the fillers that fonts draw as nothing.
const hiddenRun = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u115f\u1160\u3164\uffa0]+/gu;

const shortEscapes = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** A number with separators between thousands: 17,000. */
export function formatCount(number) {
  return countFormat.format(number);
}

/** A count with its noun: "1 event", "17,000 events". */
export function countOf(number, one, many = `${one}s`) {
  return `${formatCount(number)} ${number === 1 ? one : many}`;
}

/** Bytes in the largest unit that leaves a number of at least 1: "312 B", "4.2 MiB". */
export function formatBytes(bytes) {
  if (bytes === null || bytes === undefined) return 'not known';
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < byteUnits.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || value >= 100 ? 0 : 1;
  return `${countFormat.format(Number(value.toFixed(digits)))} ${byteUnits[unit]}`;
}

/** The share of a part in its whole, in per cent without decimals. */
export function formatShare(part, whole) {
  return `${whole > 0 ? Math.floor((part / whole) * 100) : 0} %`;
}

function pad(number, digits = 2) {
  return String(number).padStart(digits, '0');
}

function localParts(date) {
  const minutes = -date.getTimezoneOffset();
  return {
    day: `${pad(date.getFullYear(), 4)}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`,
    time: `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}.${pad(date.getMilliseconds(), 3)}`,
    zone: `${minutes < 0 ? '-' : '+'}${pad(Math.floor(Math.abs(minutes) / 60))}:${pad(Math.abs(minutes) % 60)}`,
  };
}

/** An RFC 3339 time as `2026-03-01 08:00:00.000Z`, or with the reader's own offset if `zone` is "local". */
export function formatTime(text, zone) {
  if (text === null || text === undefined) return '–';
  const date = new Date(text);
  if (Number.isNaN(date.getTime())) return visibleText(text);
  if (zone !== 'local') return date.toISOString().replace('T', ' ');
  const parts = localParts(date);
  return `${parts.day} ${parts.time} ${parts.zone}`;
}

/** A duration in its two largest units: "2 d 3 h", "12 s". */
export function formatDuration(seconds) {
  let remaining = Math.max(0, Math.round(seconds));
  const parts = [];
  for (const [unit, size] of durationUnits) {
    if (remaining >= size && parts.length < 2) {
      parts.push(`${Math.floor(remaining / size)} ${unit}`);
      remaining %= size;
    } else if (parts.length > 0) {
      break;
    }
  }
  return parts.length > 0 ? parts.join(' ') : '0 s';
}

/** A time relative to now: "3 min ago", "in 2 h". */
export function formatRelative(text, now = Date.now()) {
  const seconds = (new Date(text).getTime() - now) / 1000;
  if (Number.isNaN(seconds)) return '';
  return seconds > 0 ? `in ${formatDuration(seconds)}` : `${formatDuration(-seconds)} ago`;
}

/** The value of a `datetime-local` field for an RFC 3339 time. */
export function fieldTime(text, zone) {
  const date = new Date(text ?? '');
  if (Number.isNaN(date.getTime())) return '';
  if (zone !== 'local') return date.toISOString().slice(0, 23);
  const parts = localParts(date);
  return `${parts.day}T${parts.time}`;
}

/** The RFC 3339 time in UTC of a `datetime-local` field's value; null for an empty field. */
export function timeOfField(value, zone) {
  if (value === '') return null;
  const date = new Date(zone === 'local' ? value : `${value}Z`);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

function escapeOf(character) {
  if (character in shortEscapes) return shortEscapes[character];
  const code = character.codePointAt(0);
  return code > 0xffff ? `\\u{${code.toString(16)}}` : `\\u${pad(code.toString(16), 4)}`;
}

function escapesOf(run) {
  return Array.from(run, escapeOf).join('');
}

/** The text with every invisible character replaced by its escape. */
export function visibleText(text) {
  return String(text).replace(hiddenRun, escapesOf);
}

/** The text in runs: `{ text, hidden }`, where a hidden run is the escapes of invisible characters. */
export function visibleRuns(text) {
  const runs = [];
  let end = 0;
  for (const match of text.matchAll(hiddenRun)) {
    if (match.index > end) runs.push({ text: text.slice(end, match.index), hidden: false });
    runs.push({ text: escapesOf(match[0]), hidden: true });
    end = match.index + match[0].length;
  }
  if (end < text.length) runs.push({ text: text.slice(end), hidden: false });
  return runs;
}

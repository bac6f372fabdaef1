// Chooses where the pages' data come from. All requests go through the object that this module opens.
import { MailedSource } from './mailed.js';
import { ServedSource } from './served.js';

/**
 * Opens the data source: the data inside the page if it has any (a file that was mailed), else the server.
 * Both have the same methods with the same answers, those of Spec/operations/studio.md. A member that an answer
 * leaves out is the same as null: so the pages compare members with `== null`.
 */
export function openSource() {
  const embedded = document.getElementById('daybook-data');
  return embedded ? new MailedSource(JSON.parse(embedded.textContent)) : new ServedSource();
}

import { session } from './api.js';

/** The option of commands that leads to the store of this dashboard; a password is left out. */
export function storeOption(): string {
  const url = session.value?.url ?? '';
  return url === '' ? '' : ` --store ${quoted(url)}`;
}

/** As a shell wants it. */
export function quoted(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

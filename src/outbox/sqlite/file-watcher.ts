import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Watches a database file and its companion files; returns a function that stops it. Events may be missed. */
export function watchFile(file: string, notify: () => void): () => void {
  if (file === '') return () => {};
  const names = ['', '-wal', '-journal'].map((suffix) => basename(file) + suffix);
  let watcher: FSWatcher;
  try {
    // Watches the directory, because companion files are created and deleted.
    watcher = watch(dirname(file), { persistent: false }, (_event, name) => {
      if (name === null || names.includes(name)) notify();
    });
  } catch {
    return () => {}; // no file events here: rely on the poll
  }
  watcher.on('error', () => watcher.close());
  return () => watcher.close();
}

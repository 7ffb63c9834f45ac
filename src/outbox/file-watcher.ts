import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

/** Tells of changes of a database file and of its companions; returns the way to stop. Events may be missed. */
export function watchFile(file: string, tell: () => void): () => void {
  if (file === '') return () => {};
  const names = ['', '-wal', '-journal'].map((suffix) => basename(file) + suffix);
  let watcher: FSWatcher;
  try {
    // The directory, for the companions come and go.
    watcher = watch(dirname(file), { persistent: false }, (_event, name) => {
      if (name === null || names.includes(name)) tell();
    });
  } catch {
    return () => {}; // no file events here: the poll has to do
  }
  watcher.on('error', () => watcher.close());
  return () => watcher.close();
}

import type * as library from '@photostructure/sqlite';
import { loadLibrary } from './store/sqlite/file/driver.js';

const { name, library: loaded } = loadLibrary();

/**
 * The SQLite that Crore itself uses: `node:sqlite` if its SQLite is recent enough, else the package `@photostructure/sqlite`; both have
 * the same API. Connections of this class can take part in Crore's transactions (`queue.addIn`), those of another copy of SQLite in
 * the same process cannot.
 */
export const DatabaseSync = loaded.DatabaseSync as unknown as typeof library.DatabaseSync;
export type DatabaseSync = library.DatabaseSyncInstance;

/** `node:sqlite` or `@photostructure/sqlite`. */
export const libraryName: string = name;

// Prints the ids of all jobs in a SQLite file. A process of its own: the driver of Node 20 keeps a file open until garbage is collected, and a disk with an open file
// cannot be unmounted.
import { openDatabase } from '../../../dist/store/sqlite/file/driver.js';

const rows = openDatabase(process.argv[2]).prepare('SELECT id FROM jobs').all();
process.stdout.write(JSON.stringify(rows.map(({ id }) => String(id))));

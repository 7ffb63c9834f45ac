// An application that repeatedly writes an order and its job in one transaction, until it is killed. Every fifth
// transaction is rolled back.
import { open } from '../../../dist/index.js';
import { openDatabase } from '../../../dist/store/sqlite/file/driver.js';

const { file, prefix } = JSON.parse(process.argv[2]);
const crore = await open(`sqlite:${file}`, { onError: () => {} });
const mails = crore.queue('mails');
const db = openDatabase(file);
db.exec('PRAGMA busy_timeout = 5000');
db.exec('CREATE TABLE IF NOT EXISTS placed (id TEXT PRIMARY KEY)');
for (let i = 0; ; i++) {
  db.exec('BEGIN IMMEDIATE');
  db.prepare('INSERT INTO placed (id) VALUES (?)').run(`${prefix}${i}`);
  mails.addIn(db, { order: i }, { id: `${prefix}${i}` });
  db.exec(i % 5 === 4 ? 'ROLLBACK' : 'COMMIT');
  process.stdout.write(`${i}\n`);
  if (i % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
}

// The minimum that SQLite needs for the same: prepared statements, a hundred rows per transaction, synchronous=FULL.
// The claim of the next batch and the removal of the previous one share a commit.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { coalesce } from './coalesce.mjs';
import { openSqlite } from './root.mjs';

const BATCH = 100;

const TABLE = `
CREATE TABLE job (id INTEGER PRIMARY KEY, lease INTEGER, payload BLOB NOT NULL) STRICT;
CREATE INDEX job_ready ON job (id) WHERE lease IS NULL;`;

const CLAIM = `
UPDATE job SET lease = ?
WHERE id IN (SELECT id FROM job WHERE lease IS NULL ORDER BY id LIMIT ${BATCH})
RETURNING id, payload`;

export function open(place) {
  const db = openSqlite(place.file);
  db.exec(TABLE);
  const statements = {
    insert: db.prepare('INSERT INTO job (payload) VALUES (?)'),
    claim: db.prepare(CLAIM),
    remove: db.prepare('DELETE FROM job WHERE id = ?'),
    count: db.prepare('SELECT count(*) AS n FROM job'),
  };
  const wake = { up: () => {} };
  const insert = (payloads) => insertAll(db, statements, payloads, wake);
  return {
    enqueueOne: coalesce(insert),
    enqueueMany: insert,
    work: (_concurrency, onJob) => work(db, statements, wake, onJob),
    pending: () => statements.count.get().n,
    close: () => db.close(),
  };
}

function transaction(db, body) {
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = body();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}

function insertAll(db, { insert }, payloads, wake) {
  transaction(db, () => {
    for (const { text } of payloads) insert.run(Buffer.from(text));
  });
  wake.up();
}

function work(db, statements, wake, onJob) {
  const state = { closed: false };
  const run = loop(db, statements, wake, onJob, state);
  return {
    async close() {
      state.closed = true;
      wake.up();
      await run;
    },
  };
}

async function loop(db, statements, wake, onJob, state) {
  let held = [];
  while (!state.closed || held.length > 0) {
    held = step(db, statements, held);
    for (const row of held) onJob(row.payload);
    if (held.length > 0) await nextTurn();
    else if (!state.closed) await asleep(wake);
  }
}

function asleep(wake) {
  return new Promise((resolve) => {
    wake.up = resolve;
  });
}

function step(db, { claim, remove }, held) {
  return transaction(db, () => {
    for (const { id } of held) remove.run(id);
    return claim.all(1);
  });
}

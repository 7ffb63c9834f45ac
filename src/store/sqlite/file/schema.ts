import { CroreError } from '../../../errors.js';
import type { Database } from './driver.js';

/**
 * Numbered migrations: `user_version` of a file says how many have been applied. `state` is the index in STATES (0
 * blocked, 1 scheduled, 2 ready, 3 active, 4 done, 5 dead, 6 cancelled).
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE queues (
    n INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    swept INTEGER,
    front INTEGER NOT NULL DEFAULT 0,
    back INTEGER NOT NULL DEFAULT 0,
    claims INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    tasks INTEGER NOT NULL DEFAULT 0 CHECK (tasks >= 0),
    blocked INTEGER NOT NULL DEFAULT 0 CHECK (blocked >= 0),
    scheduled INTEGER NOT NULL DEFAULT 0 CHECK (scheduled >= 0),
    ready INTEGER NOT NULL DEFAULT 0 CHECK (ready >= 0),
    active INTEGER NOT NULL DEFAULT 0 CHECK (active >= 0),
    done INTEGER NOT NULL DEFAULT 0 CHECK (done >= 0),
    dead INTEGER NOT NULL DEFAULT 0 CHECK (dead >= 0),
    cancelled INTEGER NOT NULL DEFAULT 0 CHECK (cancelled >= 0)
  );
  CREATE TABLE jobs (
    n INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    id TEXT NOT NULL,
    state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 6),
    priority INTEGER NOT NULL DEFAULT 0,
    seq INTEGER NOT NULL,
    attempt INTEGER NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    crashes INTEGER NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    created INTEGER NOT NULL,
    at INTEGER,
    until INTEGER,
    reservation INTEGER NOT NULL DEFAULT 0,
    worker TEXT,
    token TEXT,
    spec TEXT,
    outcome,
    payload,
    CHECK ((state = 3) = (token IS NOT NULL)),
    CHECK ((state = 3) = (worker IS NOT NULL)),
    CHECK (state <> 1 OR at IS NOT NULL),
    CHECK (state < 4 OR until IS NOT NULL)
  );
  CREATE UNIQUE INDEX job_ids ON jobs (queue, id);
  CREATE INDEX job_ready ON jobs (queue, priority DESC, seq) WHERE state = 2;
  CREATE INDEX job_scheduled ON jobs (queue, at, id) WHERE state = 1;
  CREATE INDEX job_active ON jobs (queue, worker) WHERE state = 3;
  CREATE INDEX job_reserved ON jobs (queue, until) WHERE state = 3 AND until IS NOT NULL;
  CREATE INDEX job_blocked ON jobs (queue, n) WHERE state = 0;
  CREATE INDEX job_ended ON jobs (queue, state, until) WHERE state > 3;
  CREATE TABLE tasks (
    n INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    worker TEXT,
    token TEXT,
    CHECK ((worker IS NULL) = (token IS NULL))
  );
  CREATE INDEX task_waiting ON tasks (queue, seq) WHERE worker IS NULL;
  CREATE INDEX task_leased ON tasks (queue, worker) WHERE worker IS NOT NULL;
  CREATE TABLE sessions (
    queue INTEGER NOT NULL,
    worker TEXT NOT NULL,
    deadline INTEGER NOT NULL,
    info TEXT NOT NULL,
    PRIMARY KEY (queue, worker)
  ) WITHOUT ROWID;
  CREATE TABLE keys (
    queue INTEGER NOT NULL,
    key TEXT NOT NULL,
    id TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (queue, key)
  ) WITHOUT ROWID;
  CREATE INDEX key_ends ON keys (queue, until) WHERE until > 0;
  CREATE TABLE edges (
    up INTEGER NOT NULL,
    down INTEGER NOT NULL,
    policy TEXT NOT NULL CHECK (policy IN ('success', 'finished')),
    PRIMARY KEY (up, down)
  ) WITHOUT ROWID;
  CREATE INDEX edge_downs ON edges (down);
  CREATE TABLE notes (
    n INTEGER PRIMARY KEY,
    progress TEXT,
    log TEXT
  );
  `,
  `
  CREATE TABLE schedules (
    name TEXT PRIMARY KEY,
    queue INTEGER NOT NULL,
    definition TEXT NOT NULL,
    since INTEGER NOT NULL,
    next INTEGER,
    last INTEGER
  ) WITHOUT ROWID;
  ALTER TABLE jobs ADD COLUMN grp TEXT;
  DROP INDEX job_ready;
  CREATE INDEX job_ready ON jobs (queue, priority DESC, seq) WHERE state = 2 AND grp IS NULL;
  CREATE INDEX job_grouped ON jobs (queue, grp, priority DESC, seq) WHERE state = 2 AND grp IS NOT NULL;
  ALTER TABLE queues ADD COLUMN pace TEXT;
  ALTER TABLE queues ADD COLUMN grouped INTEGER NOT NULL DEFAULT 0 CHECK (grouped >= 0);
  ALTER TABLE queues ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE queues ADD COLUMN opened INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE queues ADD COLUMN started INTEGER NOT NULL DEFAULT 0;
  -- shelf: 0 has no line, 1 takes turns, 2 is at its limit, 3 rests until its rate lets it go on
  CREATE TABLE groups (
    queue INTEGER NOT NULL,
    name TEXT NOT NULL,
    waiting INTEGER NOT NULL DEFAULT 0 CHECK (waiting >= 0),
    holds INTEGER NOT NULL DEFAULT 0 CHECK (holds >= 0),
    shelf INTEGER NOT NULL DEFAULT 0 CHECK (shelf BETWEEN 0 AND 3),
    turn INTEGER NOT NULL DEFAULT 0,
    opened INTEGER NOT NULL DEFAULT 0,
    started INTEGER NOT NULL DEFAULT 0,
    rests INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (queue, name)
  ) WITHOUT ROWID;
  ALTER TABLE queues ADD COLUMN watched INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE events (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    queue INTEGER NOT NULL,
    type TEXT NOT NULL,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    info TEXT NOT NULL
  );
  CREATE INDEX event_queues ON events (queue, n);
  CREATE INDEX group_turns ON groups (queue, turn, name) WHERE shelf = 1;
  CREATE INDEX group_rests ON groups (queue, rests, name) WHERE shelf = 3;
  CREATE INDEX group_full ON groups (queue, name) WHERE shelf = 2;
  CREATE INDEX group_idle ON groups (queue, opened) WHERE waiting = 0 AND holds = 0;
  `,
  // The position of each source; see `SourceStore` in the contract.
  `
  CREATE TABLE marks (
    queue INTEGER NOT NULL,
    source TEXT NOT NULL,
    position TEXT NOT NULL,
    PRIMARY KEY (queue, source)
  ) WITHOUT ROWID;
  `,
  // Raw tasks. The unique lock of a task (`seals`) refers to the leased row that holds it; to none while the task
  // waits. Task events (`news`) are read by other processes and removed after a short time.
  `
  ALTER TABLE sessions ADD COLUMN raw INTEGER NOT NULL DEFAULT 0 CHECK (raw IN (0, 1));
  CREATE TABLE seals (
    queue INTEGER NOT NULL,
    body BLOB NOT NULL,
    task INTEGER,
    PRIMARY KEY (queue, body)
  ) WITHOUT ROWID;
  CREATE TABLE news (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    queue INTEGER NOT NULL,
    at INTEGER NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('work', 'done', 'cancel', 'delete')),
    count INTEGER,
    worker TEXT,
    token TEXT,
    task BLOB,
    result TEXT
  );
  `,
  // The history of attempts; where and when a done job ran (`ran`); ids that stay taken after the end of their job; records that
  // somebody needs: `needed` holds a dependent job, or 0 and a time for those who waited for the end.
  `
  ALTER TABLE notes ADD COLUMN attempts TEXT;
  ALTER TABLE jobs ADD COLUMN ran TEXT;
  ALTER TABLE queues ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE ended_ids (
    queue INTEGER NOT NULL,
    id TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (queue, id)
  ) WITHOUT ROWID;
  CREATE INDEX ended_id_ends ON ended_ids (queue, until);
  CREATE TABLE needed (
    up INTEGER NOT NULL,
    down INTEGER NOT NULL,
    until INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (up, down)
  ) WITHOUT ROWID;
  CREATE INDEX needed_downs ON needed (down, until);
  CREATE TABLE awaited (
    queue INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (queue, id)
  ) WITHOUT ROWID;
  `,
  // What happened in each queue, by interval; see `HistoryStore` in the contract.
  `
  CREATE TABLE history (
    queue INTEGER NOT NULL,
    range TEXT NOT NULL CHECK (range IN ('hour', 'day', 'month')),
    interval INTEGER NOT NULL,
    activity TEXT NOT NULL,
    PRIMARY KEY (queue, range, interval)
  ) WITHOUT ROWID;
  `,
  // The children that a job waits for, and the counts of a batch: see job/children.ts and job/batch.ts. An edge from a member to the job of its
  // batch is told apart from those that the job itself asked for.
  `
  ALTER TABLE notes ADD COLUMN children TEXT;
  ALTER TABLE notes ADD COLUMN batch TEXT;
  ALTER TABLE edges ADD COLUMN member INTEGER NOT NULL DEFAULT 0 CHECK (member IN (0, 1));
  `,
  // The last values of a job's progress, with their times.
  'ALTER TABLE notes ADD COLUMN steps TEXT;',
  // Ordered groups: the job that a group waits for. The breaker of a queue, how many attempts have failed in a row, until when it is open, and the
  // token of the job that it let through.
  `
  ALTER TABLE groups ADD COLUMN held INTEGER;
  ALTER TABLE queues ADD COLUMN breaker TEXT;
  ALTER TABLE queues ADD COLUMN failed INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE queues ADD COLUMN broken INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE queues ADD COLUMN trial TEXT;
  `,
];

/** 'cror' in ASCII: identifies our files. */
export const APPLICATION_ID = 0x63726f72;

export const FORMAT = MIGRATIONS.length;

/** Names of our tables. */
export const TABLES: readonly string[] = MIGRATIONS.flatMap((sql) =>
  [...sql.matchAll(/CREATE TABLE (\w+)/g)].map(([, name]) => name!),
);

/** Migrates a file to this version, in one transaction; refuses a file that is newer or not ours. */
export function migrate(db: Database, shown: string): void {
  const version = pragma(db, 'user_version');
  const owner = pragma(db, 'application_id');
  if (owner !== APPLICATION_ID && (version !== 0 || owner !== 0 || hasForeignTables(db))) {
    throw new CroreError('STORE_CORRUPT', `${shown} is a SQLite database, but not a Crore store`);
  }
  if (version > FORMAT) {
    throw new CroreError(
      'STORE_NEWER',
      `${shown} has format ${version}, this version of Crore supports ${FORMAT}: upgrade Crore`,
    );
  }
  if (version === FORMAT) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    for (const sql of MIGRATIONS.slice(pragma(db, 'user_version'))) db.exec(sql);
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT}; COMMIT`);
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}

export function pragma(db: Database, name: string): number {
  return Number(Object.values(db.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
}

/** A file that began as a ring (`src/ring/sqlite.ts`) may become a store. */
function hasForeignTables(db: Database): boolean {
  const foreign = "SELECT 1 FROM sqlite_schema WHERE substr(tbl_name, 1, 5) <> 'ring_' LIMIT 1";
  return db.prepare(foreign).get() !== undefined;
}

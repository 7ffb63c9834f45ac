import { expect, it } from 'vitest';
import { DEFAULT_SPEC, FORGETFUL_SPEC } from '../../dist/job/spec.js';
import { finish } from '../../dist/job/transitions.js';
import { type Database, loadLibrary, type SqliteLibrary } from '../../dist/store/sqlite/file/driver.js';
import { openSqlite } from '../../dist/store/sqlite/open.js';

/** The library, with the text of every statement that is prepared, and the plan that SQLite has for it. */
function recorded(): { library: SqliteLibrary; plans: Map<string, string> } {
  const { library } = loadLibrary();
  const plans = new Map<string, string>();
  class Recorded extends library.DatabaseSync {
    override prepare(sql: string): ReturnType<Database['prepare']> {
      if (/^\s*(SELECT|UPDATE|DELETE)\b[\s\S]*\bjobs\b/.test(sql)) {
        const places = sql.match(/\?/g)?.map(() => 1) ?? [];
        const steps = super.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...places);
        plans.set(sql, steps.map(({ detail }) => String(detail)).join('; '));
      }
      return super.prepare(sql);
    }
  }
  return { library: { DatabaseSync: Recorded }, plans };
}

it('adding, claiming and settling read no more of a queue than they change', async () => {
  const { library, plans } = recorded();
  const store = await openSqlite(':memory:', { timeout: 10_000, library });
  const session = { queue: 'q', worker: 'w', lease: 60_000 };
  await store.join('q', 'w', { lease: 60_000, info: '{}' });
  for (const [round, spec] of [DEFAULT_SPEC, FORGETFUL_SPEC].entries()) {
    const jobs = ['a', 'b', 'c'].map((id) => ({ id: `${id}${round}`, fresh: false, payload: '1', priority: 0, spec }));
    await store.add('q', jobs);
    const { entries } = await store.claim(session, 3);
    // The first and the last are not neighbours, so a list of rows is settled instead of a range.
    for (const part of [[entries[0]!, entries[2]!], [entries[1]!]])
      await store.settle(
        'q',
        part.map(({ lease, job }) => ({ lease, outcome: finish(job!), spec, priority: 0 })),
      );
  }
  await store.close();
  expect([...plans.keys()].filter((sql) => /\bn BETWEEN|json_each/.test(sql))).toHaveLength(6);
  const whole = [...plans].filter(([, plan]) => /SCAN jobs|INDEX job_ids \(queue=\?\)/.test(plan));
  expect(whole).toEqual([]);
});

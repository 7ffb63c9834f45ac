import { afterAll, beforeAll, expect, it } from 'vitest';
import { finish } from '../../../dist/job/transitions.js';
import { openStore } from '../../../dist/store/open.js';
import type { Store } from '../../../dist/store/store.js';
import { mustGet, newJob, settlementOf } from '../../support/jobs.js';
import { freshPostgres, type TestStore } from '../../support/stores.js';

let place: TestStore;
let store: Store;
beforeAll(async () => {
  place = await freshPostgres();
  store = await openStore(place.url, { timeout: 10_000 });
  await store.join('q', 'w', { lease: 60_000, info: '{}' });
}, 60_000);
afterAll(async () => {
  await store?.close();
  await place?.stop();
});

it.each([
  ['the separator of lists', ['a\x01b', 'c']],
  ['the mark of a missing text', ['\x02', 'c']],
  ['quotes, backslashes and line breaks', ['{"a": "\\"\\\\"}\n', "'"]],
  ['nothing', ['']],
  ['several empty ones', ['', '', '']],
])('payloads, ids and results with %s are stored as they are', async (_what, texts) => {
  const jobs = texts.map((payload, i) => newJob(`id ${i} ${payload}`, { payload }));
  expect(await store.add('q', jobs)).toEqual(jobs.map(() => ({ outcome: 'created' })));
  const { entries } = await store.claim({ queue: 'q', worker: 'w', lease: 60_000 }, 10);
  expect(entries.map(({ job }) => [job!.id, job!.payload])).toEqual(jobs.map(({ id, payload }) => [id, payload]));
  const ends = entries.map((entry) => settlementOf(entry, finish(entry.job!, entry.job!.payload as string)));
  expect(await store.settle('q', ends)).toEqual(texts.map(() => true));
  for (const [i, text] of texts.entries()) {
    expect(await mustGet(store, 'q', jobs[i]!.id)).toMatchObject({ state: 'done', result: text });
    await store.remove('q', [jobs[i]!.id]);
  }
});

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { open, type ProcessOptions } from '../../dist/index.js';
import { Program } from '../support/processes.js';
import { freshSqlite } from '../support/stores.js';
import { isAlive, until } from '../support/wait.js';

const HANDLER = new URL('../support/programs/handler.mjs', import.meta.url);
const TIMEOUT = { timeout: '30s' };
const read = (file: string) => readFileSync(file, 'utf8');
const KINDS: [string, (n: number) => ProcessOptions][] = [
  ['processes', (processes) => ({ processes })],
  ['threads', (threads) => ({ threads })],
];

/** The process a handler ran in, from what it says of its place. */
const pidOf = (place: unknown) => Number(String(place).split('/')[0]);

describe('a handler in processes', () => {
  it('process.abort() is a crash that says its signal', async () => {
    await using crore = await open('sqlite::memory:', { onError: () => {}, logger: false });
    const queue = crore.queue('abort');
    queue.work(HANDLER, { processes: 1, maxCrashes: 2 });
    const handle = await queue.add('abort');
    await until('it is dead', async () => (await handle.get())!.state === 'dead');
    const { crashes, error } = (await handle.get())!;
    expect([crashes, error]).toEqual([2, 'the process of its handler died (killed by SIGABRT) (crash 2)']);
  });

  it('ends with its parent, even if that is killed and the handler never yields', async () => {
    const store = await freshSqlite();
    const crore = await open(store.url, { onError: () => {} });
    const parent = new Program('pool-parent', { url: store.url, queue: 'orphans' });
    try {
      const queue = crore.queue<string>('orphans');
      await parent.line('ready');
      const handles = await queue.addMany([{ payload: 'spin' }, { payload: 'hold' }]);
      const pids: number[] = [];
      for (const handle of handles)
        pids.push(pidOf(await until('it runs', async () => (await handle.get())!.progress)));
      expect(pids.every((pid) => pid !== parent.child.pid && isAlive(pid, read))).toBe(true);
      await parent.end('SIGKILL');
      await until('both are gone', () => pids.every((pid) => !isAlive(pid, read)));
    } finally {
      await parent.end();
      await crore.close();
      await store.stop();
    }
  });
});

describe.each(KINDS)('a handler in %s', (_kind, sized) => {
  it.each([
    ['is an argument of node', ['--input-type=module', '-e']],
    ['is an argument of node, which has options of V8', ['--max-old-space-size=256', '--input-type=module', '-e']],
    ['is a file, and node has options of V8', ['--max-old-space-size=256']],
  ])('starts where the program of the worker %s', (_what, flags) => {
    const library = new URL('../../dist/index.js', import.meta.url);
    const code = `
      import { open } from '${library}';
      const crore = await open('sqlite::memory:', { logger: false });
      const queue = crore.queue('flags');
      const worker = queue.work(new URL('${HANDLER}'), ${JSON.stringify(sized(1))});
      console.log(await (await queue.add('count')).finished({ timeout: '30s' }));
      await worker.close();
      await crore.close();`;
    const dir = mkdtempSync(join(tmpdir(), 'crore-flags-'));
    try {
      const file = join(dir, 'program.mjs');
      writeFileSync(file, code);
      const args = [...flags, flags.at(-1) === '-e' ? code : file];
      const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 });
      expect([stdout, stderr]).toEqual(['1\n', '']);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it('adds children and waits for them, and reads the jobs it needed and its batch', async () => {
    await using crore = await open('sqlite::memory:', { logger: false });
    const queue = crore.queue<unknown, unknown>('family');
    const up = await queue.add('count', { id: 'up', delay: 1 });
    const parent = await queue.add('family', { needs: [up.id] });
    const batch = await queue.addBatch('batch');
    await batch.addMany(queue, [{ payload: 'count' }]);
    await batch.close();
    queue.work(HANDLER, sized(1));
    expect(await parent.finished(TIMEOUT)).toMatchObject({
      children: [expect.stringMatching(/^\d+\/\d+$/), expect.anything()],
      needs: [{ queue: 'family', id: 'up', state: 'done', result: expect.any(Number) }],
    });
    expect(await batch.finished(TIMEOUT)).toEqual({ open: false, total: 1, done: 1, dead: 0, cancelled: 0 });
    expect(await (await queue.add('badChild')).finished(TIMEOUT)).toEqual([
      'BAD_NAME',
      expect.stringContaining('item 0'),
    ]);
  });
});

describe.each(KINDS)('a handler in %s on Redis', (kind, sized) => {
  it('runs, fails, is cancelled and crashes as on SQLite', async () => {
    const url = `${inject('redisUrl')}?prefix=pool-${kind}`;
    await using crore = await open(url, { onError: () => {}, logger: false });
    const queue = crore.queue<unknown, unknown>('jobs');
    queue.work(HANDLER, { ...sized(2), maxCrashes: 2, killAfter: 50, backoff: () => 1 });
    expect(await (await queue.add('count')).finished(TIMEOUT)).toBe(1);
    const [failing, spinning, crashing] = await queue.addMany([
      { payload: 'throw', attempts: 2 },
      { payload: 'spin' },
      { payload: 'exit' },
    ]);
    await until('it spins', async () => (await spinning!.get())!.progress);
    await queue.cancel(spinning!.id);
    await queue.push('exit');
    await until('three are dead', async () => (await queue.count()).dead === 3);
    expect(await failing!.get()).toMatchObject({ state: 'dead', attempt: 2, crashes: 0 });
    expect(await spinning!.get()).toMatchObject({ state: 'cancelled', crashes: 0 });
    const { crashes, attempts } = (await crashing!.get())!;
    expect([crashes, attempts.map(({ outcome }) => outcome)]).toEqual([2, ['crashed', 'crashed']]);
  });
});

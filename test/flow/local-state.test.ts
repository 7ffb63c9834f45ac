import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FileJournal } from '../../dist/flow/journal/file-journal.js';
import { HOLD } from '../../dist/flow/journal/journal.js';
import { until } from '../support/wait.js';
import { end, logging, place } from './support.js';

const INFO = {
  id: 'f-1',
  name: 'f',
  file: 'f.yaml',
  state: 'running',
  size: 3,
  created: 1,
  host: 'here',
  pid: 1,
} as const;
const THERE = { host: 'there', pid: 2 };
const idsOf = async (journal: FileJournal) => (await journal.ends()).map(({ id }) => id);

describe('the journal of a private flow', () => {
  const base = () => join(place().dir, 'f.run');

  it('keeps node ends exactly and in order, across several runners', async () => {
    const path = base();
    const ends = [
      end('a', { value: { deep: [null, 'é\n'] } }),
      end('b', { state: 'failed', exit: 3, error: 'why', attempts: 2 }),
      end('b'),
    ];
    const [first, second, third] = [new FileJournal(path), new FileJournal(path), new FileJournal(path)];
    expect(await first.list()).toEqual([]);
    await first.begin(INFO);
    first.write(ends.slice(0, 2));
    await first.finish('failed', { done: 1 });
    expect(await second.list()).toEqual([
      { ...INFO, state: 'failed', counts: { done: 1 }, finished: expect.any(Number) },
    ]);
    expect(await second.takeOver('f-1', THERE, false)).toBe(true);
    second.write(ends.slice(2));
    expect(await third.list()).toEqual([{ ...INFO, ...THERE }]);
    expect(await third.ends()).toEqual(ends);
  });

  it('has one holder: others are refused, and a replaced runner cannot write any more', async () => {
    const path = base();
    const [first, second, third] = [new FileJournal(path), new FileJournal(path), new FileJournal(path)];
    await first.list();
    await first.begin(INFO);
    for (const other of [second, third]) await other.list();
    expect(await second.isHeld()).toBe(true);
    expect(await second.takeOver('f-1', THERE, false)).toBe(false);
    expect(await second.takeOver('f-1', THERE, true)).toBe(true);
    // The third journal saw the same dead runner, but came later.
    expect(await third.takeOver('f-1', THERE, true)).toBe(false);
    await expect(third.begin(INFO)).rejects.toMatchObject({ code: 'FLOW_BUSY' });
    expect(() => first.write([end('zombie')])).toThrow(expect.objectContaining({ code: 'LEASE_LOST' }));
    expect([await first.hold(), await second.hold()]).toEqual(['lost', 'held']);
    await first.finish('done', {});
    await third.list();
    expect(await idsOf(third)).toEqual([]);
  });

  it('is released when its runner has not renewed it for a while', async () => {
    const path = base();
    const [first, second] = [new FileJournal(path), new FileJournal(path)];
    await first.list();
    await first.begin(INFO);
    const long = (Date.now() - HOLD - 1_000) / 1_000;
    utimesSync(`${path}1`, long, long);
    await second.list();
    expect(await second.isHeld()).toBe(false);
    await first.hold();
    await second.list();
    expect(await second.isHeld()).toBe(true);
  });

  it('ignores an incomplete last line, and starts a new flow in a new file', async () => {
    const path = base();
    const [first, second, third] = [new FileJournal(path), new FileJournal(path), new FileJournal(path)];
    await first.list();
    await first.begin(INFO);
    first.write([end('a')]);
    appendFileSync(`${path}1`, '[["b",1,1,5');
    await second.list();
    expect(await idsOf(second)).toEqual(['a']);
    await second.begin({ ...INFO, id: 'f-2' });
    expect(existsSync(`${path}1`)).toBe(false);
    second.write([end('c')]);
    expect((await third.list()).map(({ id }) => id)).toEqual(['f-2']);
    expect(await idsOf(third)).toEqual(['c']);
  });
});

describe('a private flow', () => {
  it('started without workers can be resumed with workers, and vice versa', { timeout: 120_000 }, () => {
    const here = place();
    const nodes = logging({ a: [], b: ['a'], c: ['b'], d: ['c'] }).nodes;
    const failing = (id: string) => ({ ...nodes, [id]: { ...nodes[id], run: 'false' } });
    const run = (...args: string[]) => here.crore('run', 'f.json', '-q', ...args).status;
    here.write('f.json', { nodes: failing('b') });
    expect(run()).toBe(100);
    here.write('f.json', { nodes: failing('c') });
    expect(run('--resume', '-j', '1', '--launcher', 'env')).toBe(100);
    here.write('f.json', { nodes: failing('d') });
    expect(run('--resume')).toBe(100);
    here.write('f.json', { nodes });
    expect(run('--resume', '-j', '1', '--launcher', 'env')).toBe(0);
    expect(here.lines('log')).toEqual(['a', 'b', 'c', 'd']);
    expect(here.names).toEqual(['f.json', 'log']);
  });

  it('names the file that cannot be read', () => {
    const here = place();
    here.write('f.json', { nodes: { a: { run: 'echo ran >> log' } } });
    mkdirSync(join(here.dir, '.crore', 'f.json.run1'), { recursive: true });
    const { status, stderr } = here.crore('run', 'f.json', '-q');
    expect({ status, lines: stderr.split('\n').length }).toEqual({ status: 69, lines: 2 });
    expect(stderr).toMatch(/^crore: .*f\.json\.run1: EISDIR/);
    expect(here.read('log')).toBe('');
  });

  it('writes each node end to a file before its dependents start', async () => {
    const here = place();
    here.write('f.json', {
      nodes: { a: { run: 'true' }, b: { run: 'cat .crore/f.json.run1 > seen; sleep 60', needs: ['a'] } },
    });
    const running = here.start('run', 'f.json', '-q');
    await until('node b to run', () => here.read('seen').includes('\n'));
    expect(here.lines('seen')).toHaveLength(2);
    expect(JSON.parse(here.lines('seen')[1]!)[0].slice(0, 3)).toEqual(['a', 1, 1]);
    await running.kill('SIGKILL');
    expect(readdirSync(join(here.dir, '.crore'))).toEqual(['f.json.run1']);
    expect(readFileSync(join(here.dir, '.crore', 'f.json.run1'), 'utf8')).toBe(here.read('seen'));
  });
});

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../dist/index.js';
import { inFolder } from '../ring/support/w8y.js';
import { PostgresServer, postgresBinaries } from '../support/postgres.js';
import { until } from '../support/wait.js';
import { Line } from './support/crore.js';

/** The tests of each command also run on PostgreSQL, with `CRORE_ALL_STORES=1`; this is every command once. */
describe('every command on PostgreSQL', () => {
  let server: PostgresServer;
  let line: Line;
  beforeAll(async () => {
    server = await PostgresServer.start({ fsync: 'on' });
    line = new Line(`${server.url}?schema=app`);
    await (await open(line.url)).close();
  });
  afterAll(() => server.stop());

  /** The output of a command that must succeed without a word on stderr. */
  async function out(...args: string[]): Promise<string> {
    const { code, out, err } = await line.run(args);
    expect({ args, code, err }).toEqual({ args, code: 0, err: '' });
    return out;
  }

  it('push, work, wait and job', async () => {
    expect(await out('push', 'mails', '"ada"', '--id', 'a')).toBe('a\n');
    await out('push', 'mails', '"ben"', '--id', 'b', '--delay', '1h');
    expect(await out('job', 'ls', 'mails')).toMatch(/\nb +scheduled .*\na +ready /);
    await out('work', 'mails', '--drain', '-q', '--result', '--', 'echo', '{}');
    expect(await out('wait', 'mails', 'a')).toBe('ada\n');
    expect(await out('job', 'show', 'mails', 'a')).toMatch(/\nstate +done\n/);
    expect(await out('job', 'tree', 'mails', 'a')).toContain('mails  a  done');
    await out('job', 'move', 'mails', 'b', '--to', 'other');
    expect(await out('job', 'ls', 'other')).toMatch(/\nb +scheduled /);
    await out('job', 'cancel', 'other', 'b');
    await out('job', 'rm', 'other', 'b');
  });

  it('dead, queue, batch, schedule and worker', async () => {
    await out('push', 'ops', '1', '2', '--attempts', '1');
    await out('work', 'ops', '--drain', '-q', '--', 'sh', '-c', 'exit 100');
    expect((await line.json('dead', 'ls', 'ops')).length).toBe(2);
    expect(await out('dead', 'retry', 'ops', '--all')).toContain('2');
    await out('work', 'ops', '--drain', '-q', '--', 'sh', '-c', 'exit 100');
    expect(await out('dead', 'rm', 'ops', '--all')).toContain('2');
    for (const args of [
      ['pause', 'ops'],
      ['resume', 'ops'],
      ['limits', 'ops', '--concurrency', '3'],
      ['breaker', 'ops', '--failures', '20', '--pause', '1m'],
    ])
      await out('queue', ...args);
    expect(await out('queue', 'ls')).toContain('ops');
    await out('batch', 'open', 'ops', '--id', 'may');
    await out('push', 'ops', '3', '--batch', 'may');
    await out('batch', 'close', 'ops', 'may');
    expect(await out('batch', 'show', 'ops', 'may')).toMatch(/\nopen +no\n/);
    await out('batch', 'cancel', 'ops', 'may');
    await out('schedule', 'add', 'nightly', 'ops', '--every', '90m');
    expect((await out('schedule', 'run', 'nightly')).trim()).not.toBe('');
    expect(await out('schedule', 'ls')).toContain('nightly');
    await out('schedule', 'rm', 'nightly');
    await out('queue', 'clear', 'ops', '--yes');
    await out('worker', 'ls');
  });

  it('events', async () => {
    const events = line.start(['events', 'seen', '--limit', '1', '--for', '60s', '--json']);
    let ended = false;
    void events.ended.then(() => {
      ended = true;
    });
    const crore = await open(line.url);
    await until('an event', async () => {
      await crore.queue('seen').add(1);
      return ended;
    });
    await crore.close();
    expect((await events.ended).out).toContain('"type":"added"');
  });

  it('run, flow, why, worker and ring', async () => {
    await inFolder(async (dir) => {
      const file = join(dir, 'flow.json');
      const nodes = { a: { run: 'echo 1' }, b: { run: `test -e ${dir}/go`, needs: ['a'] } };
      writeFileSync(file, JSON.stringify({ name: 'walk', nodes, cache: true }));
      const worker = line.start(['worker', '-j', '1', '--idle', '200ms']);
      expect((await line.run(['run', file, '-q', '--store', line.url])).code).toBe(100);
      expect((await worker.ended).code).toBe(0);
      const [flow] = await line.json('flow', 'ls');
      expect(flow).toMatchObject({ name: 'walk', state: 'failed', counts: { done: 1, failed: 1 } });
      expect(await out('flow', 'show', String(flow!.id))).toContain('failed');
      writeFileSync(join(dir, 'go'), '');
      expect((await line.run(['flow', 'retry', String(flow!.id)])).code).toBe(0);
      await out('flow', 'graph', String(flow!.id), join(dir, 'g.mmd'));
      expect((await line.run(['why', 'a', file, '--store', line.url])).out).toContain('nothing has changed');
      expect((await line.run(['ring', '-u', line.url, '-k', 'w', '-q', 'true'])).code).toBe(0);
    });
  });

  it('backup names pg_dump, whose copy is a complete store', async () => {
    const refused = await line.run(['backup', 'copy.db']);
    expect(refused).toMatchObject({ code: 69, err: expect.stringContaining(`pg_dump --schema='"app"' --file=FILE`) });
    await out('push', 'kept', '"x"', '--id', 'x');
    const at = ['-h', '127.0.0.1', '-p', String(server.port), '-U', 'crore'];
    const dump = execFileSync(join(postgresBinaries()!, 'pg_dump'), [...at, '--schema="app"', 'postgres']);
    await server.client`create database copy`;
    execFileSync(join(postgresBinaries()!, 'psql'), [...at, '-q', '-v', 'ON_ERROR_STOP=1', 'copy'], {
      input: dump,
      stdio: ['pipe', 'ignore', 'inherit'],
    });
    const copy = new Line(line.url.replace('/postgres?', '/copy?'));
    const work = await copy.run(['work', 'kept', '--drain', '-q', '--result', '--', 'echo', '{}']);
    expect(work).toMatchObject({ code: 0, err: '' });
    expect((await copy.run(['wait', 'kept', 'x'])).out).toBe('x\n');
  });
});

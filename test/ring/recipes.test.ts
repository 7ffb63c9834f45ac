import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseArgs } from '../../dist/ring/args.js';
import { HELP } from '../../dist/ring/help.js';
import { RedisServer } from '../support/redis.js';
import { until } from '../support/wait.js';
import { inFolder, run, start } from './support/w8y.js';

const page = readFileSync(new URL('../../docs/w8y.md', import.meta.url), 'utf8');
let redis: RedisServer;
beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());

function script(dir: string, name: string, body: string): string {
  const file = join(dir, name);
  writeFileSync(file, `#!/bin/sh\n${body}\n`);
  chmodSync(file, 0o755);
  return file;
}

describe('the recipes in the documentation', () => {
  it('poll each tenant once per rest period, continue after a failed poll, and pick up a new tenant', async () => {
    await inFolder(async (dir) => {
      await redis.client.rpush('tenants:list', 'acme', 'globex', 'bad');
      script(dir, 'poll-tenant', 'echo "$1"; [ "$1" != bad ]');
      const args = ['-c', '-k', 'tenants', '-j', '4', '--rest', '60', '--timeout', '300', '-i', '0', '-i', '1'];
      const workers = [1, 2].map(() => start([...args, '-u', redis.url, './poll-tenant', '{}'], { cwd: dir }));
      const polled = (): string[] =>
        workers
          .map(({ written }) => written.out)
          .join('')
          .split('\n')
          .filter(Boolean)
          .sort();
      await until('all tenants to be polled', () => polled().length === 3);
      await redis.client.rpush('tenants:list', 'new');
      await until('the new tenant to be polled', () => polled().includes('new'));
      for (const worker of workers) worker.signal('SIGTERM');
      await Promise.all(workers.map((worker) => worker.ended));
      expect(polled()).toEqual(['acme', 'bad', 'globex', 'new']);
    });
  });

  it('run a job of several crontabs once', async () => {
    await inFolder(async (dir) => {
      await redis.client.rpush('nightly:list', 'backup');
      script(dir, 'run-job', 'echo "ran $1"');
      const machines = [1, 2, 3].map(() =>
        run(['-k', 'nightly', '--rest', '3000', '-q', '-u', redis.url, './run-job', '{}'], { cwd: dir }),
      );
      const results = await Promise.all(machines);
      expect(results.map(({ out }) => out).join('')).toBe('ran backup\n');
      expect(results.map(({ code }) => code)).toEqual([0, 0, 0]);
    });
  });

  it('drain a ring in one pass, and keep the items that fail', async () => {
    await inFolder(async (dir) => {
      const items = Array.from({ length: 30 }, (_, i) => `job ${i}`);
      await redis.client.rpush('todo:list', ...items);
      script(dir, 'handle', 'case $1 in *7) exit 1;; esac');
      const body = `./handle "$1" && redis-cli -p ${redis.port} LREM todo:list 0 "$1"`;
      const args = ['-k', 'todo', '-j', '8', '--max-items', '1000000', '-i', '0', '-i', '1', '-u', redis.url];
      expect((await run([...args, 'sh', '-c', body, 'sh', '{}'], { cwd: dir })).code).toBe(0);
      expect((await redis.client.lrange('todo:list', 0, -1)).sort()).toEqual(['job 17', 'job 27', 'job 7']);
    });
  });
});

describe('the documentation', () => {
  it('lists every option in the help, and the parser accepts them all', () => {
    const options = [...HELP.matchAll(/^ +(?:-(\w), )? *--([a-z-]+)(=\w+)?/gm)];
    expect(options.length).toBe(19);
    for (const [, short, long, value] of options) {
      expect(page).toContain(`--${long}`);
      if (short) expect(page).toContain(`-${short}, --${long}`);
      const sample = { stdin: 'null', 'on-lost': 'warn' }[long!] ?? '1';
      const argv = value ? [`--${long}`, sample, 'true'] : [`--${long}`, 'true'];
      expect(() => parseArgs(argv, {})).not.toThrow();
    }
  });
});

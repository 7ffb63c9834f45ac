import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { showItem } from '../../dist/process/log.js';
import { redact, redactUrl } from '../../dist/redact.js';
import { RedisServer } from '../support/redis.js';
import { inFolder, run, start } from './support/w8y.js';

const PASSWORD = 's3:cr@t/100%';
const ENCODED = encodeURIComponent(PASSWORD);
let redis: RedisServer;

beforeAll(async () => {
  redis = await RedisServer.start(['--requirepass', PASSWORD], { password: PASSWORD });
});
beforeEach(async () => {
  await redis.client.del('log:list');
  await redis.client.rpush('log:list', 'a');
});
afterAll(() => redis.stop());

const url = (): string => `redis://:${ENCODED}@localhost:${redis.port}`;
const w8y = (...args: string[]) => run(['-k', 'log', ...args], { env: { REDIS_URL: url() } });

describe('log lines', () => {
  it('have the prefix and a UTC time with microseconds', async () => {
    const before = Date.now();
    const { err } = await w8y('true');
    const lines = err.trimEnd().split('\n');
    expect(lines.length).toBeGreaterThan(0);
    for (const line of lines) {
      const [, date, time] = /^w8y: (\d{4}\/\d\d\/\d\d) (\d\d:\d\d:\d\d\.\d{6}) \S/.exec(line) ?? [];
      const logged = Date.parse(`${date?.replaceAll('/', '-')}T${time}Z`);
      expect(logged).toBeGreaterThanOrEqual(before - 50);
      expect(logged).toBeLessThanOrEqual(Date.now() + 50);
    }
  });

  it('have no time with -t', async () => {
    expect((await w8y('-t', 'true')).err).toMatch(/^w8y: a: true started, pid \d+\nw8y: a: exit 0 after [\d.]+ s\n$/);
  });

  it('are suppressed on stderr by -q, but still written to the log file', async () => {
    await inFolder(async (dir) => {
      const file = join(dir, 'log');
      const { err } = await w8y('-q', '-f', file, 'sh', '-c', 'echo of the child >&2');
      expect(err).toBe('of the child\n');
      expect(readFileSync(file, 'utf8')).toMatch(/^w8y: .*started.*\nw8y: .*exit 0/);
    });
  });

  it('are appended to the log file, which only the owner can read', async () => {
    await inFolder(async (dir) => {
      const file = join(dir, 'log');
      await w8y('-qt', '-f', file, 'true');
      await w8y('-qt', `--log-file=${file}`, 'true');
      expect(readFileSync(file, 'utf8').match(/exit 0/g)).toHaveLength(2);
      expect(statSync(file).mode & 0o777).toBe(0o600);
    });
  });

  it('go to stderr and to the log file without -q', async () => {
    await inFolder(async (dir) => {
      const file = join(dir, 'log');
      const { err } = await w8y('-f', file, 'true');
      expect(err).toBe(readFileSync(file, 'utf8'));
    });
  });

  it('show an item on one line whatever it contains', () => {
    expect(showItem(Buffer.from('a\tb\n\x1b[31m\\ äß€'))).toBe('a\\tb\\n\\x1b[31m\\\\ äß€');
    expect(showItem(Buffer.from([0x61, 0xff, 0x00]))).toBe('a\\xff\\x00');
    expect(showItem(Buffer.from('x'.repeat(1000)))).toBe(`${'x'.repeat(200)}… (1000 bytes)`);
  });
});

describe('the password in the URL', () => {
  it('gives access to the server and appears neither on stderr nor in the log file, whatever fails', async () => {
    await inFolder(async (dir) => {
      const file = join(dir, 'log');
      const bad = [
        url(),
        `redis://:${ENCODED}@localhost:1`,
        `redis://:${PASSWORD}@localhost:${redis.port}`,
        `redis://user:${PASSWORD}@localhost:${redis.port}/notanumber`,
        `nonsense://user:${PASSWORD}@localhost`,
        `redis://:wrong${ENCODED}@localhost:${redis.port}`,
        `redis+sentinel://:${PASSWORD}@localhost`,
      ];
      const results = await Promise.all(bad.map((each) => run(['-u', each, '-f', file, '-k', 'log', 'true'])));
      expect(results.map(({ code }) => code)).toEqual([0, 2, 2, 2, 2, 2, 2]);
      const written = results.map(({ err, out }) => err + out).join('') + readFileSync(file, 'utf8');
      for (const secret of [PASSWORD, ENCODED, 's3', '@t/100']) expect(written).not.toContain(secret);
    });
  });

  it('is masked in every form of URL', () => {
    expect(redact('redis://u:p@h:1/0')).toBe('redis://u:***@h:1/0');
    expect(redact('at redis://:a@b@h, and rediss://x:y@z')).toBe('at redis://:***@h, and rediss://x:***@z');
    expect(redact('redis://justone@h')).toBe('redis://***@h');
    expect(redact('redis://h?password=abc&db=1')).toBe('redis://h?password=***&db=1');
    const user = 'postgres://jobs@h/db?schema=a';
    expect([redact(`at ${user} and`), redactUrl(user)]).toEqual([`at ${user} and`, user]);
    for (const url of ['postgres://jobs:p@h/db', 'postgres://jobs@p@h/db', 'postgres://jobs@h/db?x=p@h', 'redis://p@h'])
      expect([redact(url), redactUrl(url)].join()).not.toContain('p@');
    expect(redactUrl('postgres://jobs@h/db?password=abc')).toBe('postgres://jobs@h/db?password=***');
  });

  it('is not visible in the process list', async () => {
    const child = start(['-u', url(), '-k', 'log', '-q', 'sh', '-c', 'echo on; sleep 30']);
    await child.says('on\n');
    expect(readFileSync(`/proc/${child.pid}/cmdline`, 'utf8')).not.toContain(ENCODED);
    child.signal('SIGTERM');
    await child.ended;
  });

  it('can be read from a file', async () => {
    await inFolder(async (dir) => {
      const file = join(dir, 'url');
      writeFileSync(file, `${url()}\n`, { mode: 0o600 });
      expect(await run(['-u', `@${file}`, '-k', 'log', '-q', 'echo', '{}'])).toMatchObject({ code: 0, out: 'a\n' });
    });
  });
});

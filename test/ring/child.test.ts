import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RedisServer } from '../support/redis.js';
import { BIN, inFolder, run, type StartOptions, start } from './support/w8y.js';

let redis: RedisServer;
let prefix = '';
let count = 0;

beforeAll(async () => {
  redis = await RedisServer.start();
});
beforeEach(() => {
  prefix = `child${count++}`;
});
afterAll(() => redis.stop());

const push = (...items: (string | Buffer)[]): Promise<number> => redis.client.rpush(`${prefix}:list`, ...items);
const w8y = (args: string[], options?: StartOptions) => run(['-u', redis.url, '-k', prefix, ...args], options);
const locks = (): Promise<string[]> => redis.client.keys(`${prefix}:lock:*`);

describe('arguments and environment', () => {
  it('replaces {} wherever and as often as it occurs', async () => {
    await push('a');
    const { out } = await w8y(['-q', 'printf', '%s|', '{}', 'x{}y{}', '{', '{}{}', '{ }']);
    expect(out).toBe('a|xaya|{|aa|{ }|');
  });

  it('never replaces {} in the name of the executable', async () => {
    await push('true');
    const { code, err } = await w8y(['-t', '{}']);
    expect({ code, err }).toEqual({ code: 127, err: 'w8y: cannot run {}: not found\n' });
  });

  it('passes an item to the child as one argument, untouched by any shell or pattern', async () => {
    const item = '$(touch /tmp/x) `id` "\' * \\ $& $1 %s\n{}';
    await push(item);
    expect((await w8y(['-q', 'printf', '%s', '{}'])).out).toBe(item);
  });

  it('sets -e NAME, overriding an inherited NAME, and passes on the rest of the environment', async () => {
    await push('the item');
    const env = { NAME: 'old', KEPT: 'yes' };
    const { out } = await w8y(['-q', '-e', 'NAME', process.execPath, '-p', 'JSON.stringify(process.env)'], { env });
    expect(JSON.parse(out)).toMatchObject({ NAME: 'the item', KEPT: 'yes' });
  });

  it('passes on variables with names that no shell allows when started as node bin/w8y', async () => {
    await push('a');
    const env = { 'odd.name': 'kept' };
    const args = ['-q', process.execPath, '-p', 'process.env["odd.name"]'];
    expect((await w8y(args, { env, command: [process.execPath, BIN] })).out).toBe('kept\n');
  });

  it('finds the executable in PATH, and by a relative or absolute path', async () => {
    await inFolder(async (dir) => {
      const file = join(dir, 'tool');
      writeFileSync(file, '#!/bin/sh\necho tool "$@"\n');
      chmodSync(file, 0o755);
      await push('a');
      const env = { PATH: `${dir}:${process.env.PATH}` };
      expect((await w8y(['-q', 'tool', '{}'], { env })).out).toBe('tool a\n');
      expect((await w8y(['-q', './tool', '{}'], { cwd: dir })).out).toBe('tool a\n');
      expect((await w8y(['-q', file, '{}'])).out).toBe('tool a\n');
    });
  });
});

describe('standard streams', () => {
  it('inherits stdin, stdout and stderr', async () => {
    await push('a');
    const { out, err } = await w8y(['-q', 'sh', '-c', 'cat; echo to stderr >&2'], { input: 'from stdin' });
    expect({ out, err }).toEqual({ out: 'from stdin', err: 'to stderr\n' });
  });

  it('gives the child an empty stdin with --stdin null, and the item with --stdin item', async () => {
    await push(Buffer.from([0, 1, 0xff, 10]));
    expect((await w8y(['-q', '--stdin', 'null', 'cat'], { input: 'ours' })).out).toBe('');
    expect([...(await w8y(['-q', '--stdin', 'item', 'cat'], { input: 'ours' })).stdout]).toEqual([0, 1, 0xff, 10]);
  });

  it('tolerates a child that does not read its item', async () => {
    await push('x'.repeat(1_000_000));
    expect((await w8y(['-q', '--stdin', 'item', 'true'])).code).toBe(0);
  });
});

describe('exit codes', () => {
  it.each([0, 1, 2, 75, 126, 127, 255])('passes on exit code %i of the child', async (code) => {
    await push('a');
    expect((await w8y(['-q', 'sh', '-c', `exit ${code}`])).code).toBe(code);
  });

  it.each([
    ['KILL', 137],
    ['TERM', 143],
    ['SEGV', 139],
  ])('is 128+n when the child is killed by %s', async (signal, code) => {
    await push('a');
    expect(await w8y(['-q', 'sh', '-c', `kill -${signal} $$`])).toMatchObject({ code, signal: null });
  });

  it('is 127 for an executable that does not exist, which is named in one line; the item is freed', async () => {
    await push('a');
    const { code, err } = await w8y(['-ct', 'no-such-program', '{}']);
    expect({ code, err }).toEqual({ code: 127, err: 'w8y: cannot run no-such-program: not found\n' });
    expect(await locks()).toEqual([]);
  });

  it('is 126 for one that is not executable, which is named in one line; the item is freed', async () => {
    await inFolder(async (dir) => {
      const file = join(dir, 'data');
      writeFileSync(file, 'no program');
      await push('a');
      const { code, err } = await w8y(['-t', file]);
      expect({ code, err }).toEqual({ code: 126, err: `w8y: cannot run ${file}: permission denied\n` });
      expect((await w8y(['-t', dir])).code).toBe(126);
      expect(await locks()).toEqual([]);
    });
  });
});

describe('the bytes of items', () => {
  const everyByte = Buffer.from(Array.from({ length: 255 }, (_, i) => i + 1));
  const odd = [
    ['every byte but NUL', everyByte],
    ['bytes that end in line ends', Buffer.concat([Buffer.from([0xff]), Buffer.from('\n\n')])],
    ['a cut UTF-8 sequence', Buffer.from([0xe2, 0x82])],
    ['a byte order mark and umlauts', Buffer.from('\ufeffäöü€😀')],
    ['an empty item', Buffer.alloc(0)],
    ['a name of the prototype', Buffer.from('__proto__')],
    ['backslashes and octal look-alikes', Buffer.from([0x5c, 0x30, 0x31, 0x30, 0x31, 0xfe])],
  ] as const;

  it.each(odd)('%s reaches {} unchanged', async (_, item) => {
    await push(item);
    expect((await w8y(['-q', 'printf', '%s', '{}'])).stdout).toEqual(item);
    expect((await w8y(['-q', 'printf', '%s', '<{}\\>'])).stdout).toEqual(
      Buffer.concat([Buffer.from('<'), item, Buffer.from('\\>')]),
    );
  });

  it.each(odd)('%s reaches the environment unchanged', async (_, item) => {
    await push(item);
    const { stdout } = await w8y(['-q', '-e', 'ITEM', 'sh', '-c', 'printf %s "$ITEM"']);
    expect(stdout).toEqual(item);
  });

  it('preserves the exit codes for an item that is passed through the shell', async () => {
    await push(Buffer.from([0xff]));
    expect((await w8y(['-q', 'sh', '-c', 'exit 9', '{}'])).code).toBe(9);
    const { code, err } = await w8y(['-q', 'no-such-program', '{}']);
    expect(code).toBe(127);
    expect(err).toContain('no-such-program');
  });

  it('skips an item with a NUL with one log line, keeps it in the ring, and continues', async () => {
    await push(Buffer.from('a\0b'), 'good');
    const { code, out, err } = await w8y(['-ct', '--max-items', '3', 'echo', '{}']);
    expect({ code, out }).toEqual({ code: 0, out: 'good\ngood\ngood\n' });
    expect(err.match(/error: item a\\x00b is skipped/g)).toHaveLength(1);
    expect(await redis.client.llen(`${prefix}:list`)).toBe(2);
    expect(await locks()).toEqual([]);
  });

  it('ends a single run on a ring of only such items, and waits in a continuous run', async () => {
    await push(Buffer.from('a\0b'));
    expect((await w8y(['-q', 'echo', '{}'])).code).toBe(0);
    const child = start(['-u', redis.url, '-k', prefix, '-c', 'echo', '{}']);
    await child.complains('is skipped');
    await push('good');
    await child.says('good\n');
    child.signal('SIGTERM');
    await child.ended;
  });

  it('accepts an item with a NUL if it is not passed as an argument', async () => {
    await push(Buffer.from('a\0b'));
    expect((await w8y(['-q', '--stdin', 'item', 'cat'])).out).toBe('a\0b');
  });

  it('skips an item that is too long for an argument', async () => {
    await push('x'.repeat(200_000), 'good');
    const { code, out, err } = await w8y(['-t', 'echo', '{}']);
    expect({ code, out }).toEqual({ code: 0, out: 'good\n' });
    expect(err).toContain('is skipped: an argument or variable of');
  });
});

describe('--timeout', () => {
  it('ends a child that takes too long and returns its exit code', async () => {
    await push('a');
    const { code, err } = await w8y(['-t', '--timeout', '0.3', 'sleep', '60']);
    expect(code).toBe(143);
    expect(err).toContain('a: timeout');
    expect(await locks()).toEqual([]);
  });

  it('kills the whole process group after the grace period if SIGTERM is ignored', async () => {
    await push('a');
    const body = "trap '' TERM; (trap '' TERM; sleep 61.5) & sleep 61.5; wait";
    const { code } = await w8y(['-q', '--timeout', '0.3', '--grace', '0.2', 'sh', '-c', body]);
    expect(code).toBe(137);
  });
});

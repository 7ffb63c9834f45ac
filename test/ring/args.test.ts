import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseArgs } from '../../dist/ring/args.js';
import { RedisServer } from '../support/redis.js';
import { run } from './support/w8y.js';

let redis: RedisServer;
beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());

describe('the forms of arguments', () => {
  it.each([
    [['-k', 'work', 'true']],
    [['-kwork', 'true']],
    [['-k=work', 'true']],
    [['--key-prefix', 'work', 'true']],
    [['--key-prefix=work', 'true']],
    [['-cqkwork', 'true']],
    [['-cqk', 'work', '--', 'true']],
  ])('%j sets the prefix and the executable', (argv) => {
    expect(parseArgs(argv, {})).toMatchObject({ prefix: 'work', command: ['true'] });
  });

  it('allows short flags to be combined', () => {
    expect(parseArgs(['-cqt', 'true'], {})).toMatchObject({ continuous: true, quiet: true, timestamps: false });
  });

  it('ends the options at the first positional, so that the executable keeps its own flags', () => {
    const { command, continuous } = parseArgs(['-q', 'sh', '-c', 'echo {}', '--quiet'], {});
    expect({ command, continuous }).toEqual({ command: ['sh', '-c', 'echo {}', '--quiet'], continuous: false });
  });

  it('ends the options at --, even before an executable that looks like an option', () => {
    expect(parseArgs(['-c', '--', '-odd', '-x'], {}).command).toEqual(['-odd', '-x']);
  });

  it('has the documented defaults', () => {
    expect(parseArgs(['true'], {})).toMatchObject({
      url: 'redis://localhost:6379',
      prefix: '',
      lockName: 'lock',
      expiryMs: 5000,
      exitCodes: [0],
      continuous: false,
      jobs: 1,
      stdin: 'inherit',
      onLost: 'term',
    });
  });

  it('takes the URL from REDIS_URL, unless -u is given', () => {
    const env = { REDIS_URL: 'redis://other:1' };
    expect(parseArgs(['true'], env).url).toBe('redis://other:1');
    expect(parseArgs(['-u', 'redis://mine:2', 'true'], env).url).toBe('redis://mine:2');
  });

  it('replaces the default exit code with the given ones', () => {
    expect(parseArgs(['-i', '3', '-i', '4', 'true'], {}).exitCodes).toEqual([3, 4]);
    expect(parseArgs(['-i3,4', 'true'], {}).exitCodes).toEqual([3, 4]);
  });

  it.each([
    [['--nonsense', 'true'], 'unknown option --nonsense'],
    [['-Z', 'true'], 'unknown option -Z'],
    [['--quiet=yes', 'true'], 'option --quiet takes no value'],
    [['-k'], 'option --key-prefix needs a value'],
    [['-k', '-c', 'true'], 'option --key-prefix needs a value'],
    [['-x', '0', 'true'], '--key-expiry 0'],
    [['-x', '0.5', 'true'], '--key-expiry 0.5'],
    [['-x', '-1', 'true'], '--key-expiry -1'],
    [['-x', 'soon', 'true'], '--key-expiry soon'],
    [['-i', '256', 'true'], '--exit-codes 256'],
    [['-j', '0', 'true'], '--jobs 0'],
    [['--max-items', '1.5', 'true'], '--max-items 1.5'],
    [['--stdin', 'tape', 'true'], '--stdin tape'],
    [['--on-lost', 'shrug', 'true'], '--on-lost shrug'],
    [['--lock-name', 'list', 'true'], "--lock-name 'list'"],
    [['-e', 'A=B', 'true'], "--env-var 'A=B'"],
    [['-q'], 'no executable'],
  ])('refuses %j', (argv, message) => {
    expect(() => parseArgs(argv, {})).toThrow(message);
  });
});

describe('invalid usage of the command', () => {
  it.each([
    [['--nonsense', 'true'], '--nonsense'],
    [['-x', '0', 'true'], '--key-expiry 0'],
    [[], 'no executable'],
    [['-u', 'http://x', 'true'], 'unknown scheme http:'],
    [['-u', 'redis://localhost/x', 'true'], 'the database x'],
    [['-u', 'redis+sentinel://localhost', 'true'], 'name of the primary'],
    [['-u', '@/nowhere/url', 'true'], '/nowhere/url'],
    [['-u', 'redis://localhost:1', '-q', '-f', '/nowhere/log', 'true'], '/nowhere/log'],
  ])('%j prints one line on stderr and exits 2', async (argv, named) => {
    const { code, err, out } = await run(argv);
    expect({ code, out, lines: err.split('\n').length - 1 }).toEqual({ code: 2, out: '', lines: 1 });
    expect(err).toContain(named);
  });

  it('prints the help on stdout and exits 0, for both spellings', async () => {
    const [short, long] = await Promise.all([run(['-h']), run(['--help'])]);
    expect(short).toMatchObject({ code: 0, err: '' });
    expect(short.out).toBe(long.out);
    for (const flag of [
      '-u, --redis-url',
      '-k, --key-prefix',
      '-x, --key-expiry',
      '-e, --env-var',
      '-c, --continuous',
    ]) {
      expect(short.out).toContain(flag);
    }
  });

  it('names a Redis that cannot be reached and exits 2', async () => {
    const { code, err } = await run(['-u', 'redis://localhost:1', '-k', 'a', 'true']);
    expect(code).toBe(2);
    expect(err).toMatch(/^w8y: .* cannot reach redis:\/\/localhost:1: connection refused\n$/);
  });

  it('names a key of the wrong type and exits 2', async () => {
    await redis.client.set('wrong:list', 'x');
    const { code, err } = await run(['-u', redis.url, '-k', 'wrong', 'true']);
    expect(code).toBe(2);
    expect(err).toContain('WRONGTYPE');
  });
});

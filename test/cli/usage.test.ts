import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMANDS } from '../../dist/cli/command-table.js';
import { RedisServer } from '../support/redis.js';
import { Line, runMany } from './support/crore.js';

const bin = fileURLToPath(new URL('../../bin/crore', import.meta.url));
let dir = '';
let line: Line;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'crore-usage-'));
  writeFileSync(join(dir, 'data'), 'no program');
  line = new Line('sqlite:none.db');
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** Bad command lines, and the words that explain them. */
const BAD: [args: string, words: string][] = [
  ['--frobnicate queue ls', "unknown option '--frobnicate' before the command (known there: --store, --json)"],
  ['-j 4 work q -- true', "unknown option '-j' before the command"],
  ['--frobnicate', "unknown option '--frobnicate'"],
  ['--store', "option '--store <url>' argument missing"],
  ['--json=yes queue ls', "option '--json' does not take an argument"],
  ['--store x.db', 'missing command'],
  ['--json frobnicate', "unknown command 'frobnicate'"],
  ['--json serve', "unknown option '--json'"],
  ['--store x.db demo', "unknown option '--store'"],
  ['--json push q x --unique', "option '--unique <key>' argument missing"],
  ['push', "missing required argument 'queue'"],
  ['push q x --delay 10', "--delay: '10' is not a duration: use milliseconds or a string such as '10s'"],
  ['push q x --delay 1s --at 2030-01-01', 'give --delay or --at, not both'],
  ['push q x --at tomorrow', "--at must be an ISO time such as 2026-12-24T18:00Z, not 'tomorrow'"],
  ['push q x --at 2030-13-01', '--at must be an ISO time'],
  ['push q x --priority high', "--priority must be a whole number, -1000000 to 1000000, not 'high'"],
  ['push q x --attempts 0', '--attempts must be a whole number, 1 to 1000000, not 0'],
  ['push q x --frobnicate', "unknown option '--frobnicate'"],
  ['push q x --raw --delay 1s', '--delay is for jobs'],
  ['push q x --header nothing', "--header must be NAME=VALUE, not 'nothing'"],
  ['push q x --raw --id a', '--id is for jobs'],
  ['push q x y --id a', '--id is for a single payload'],
  ['push q x --limit -1', '--limit must be a whole number'],
  ['push q x --store ftp://x', "store URL 'ftp://x' is not one of"],
  ['push q x --store @nowhere', 'cannot read the store URL from nowhere: ENOENT'],
  ['push q {to:"ada"}', '--text queues it as text'],
  ['push q x --unique', "option '--unique <key>' argument missing"],
  ['work q', "no executable: give it after '--'"],
  ['work q --', "no executable: give it after '--'"],
  ['work q x -- true', 'too many arguments'],
  ['work -- true', "missing required argument 'queue'"],
  ['work q -- no-such-program', 'cannot run no-such-program: not found'],
  ['work q -- ./data', 'cannot run ./data: permission denied'],
  ['work q -- {}', 'cannot run {}: not found'],
  ['work q -j 0 -- true', '--jobs must be a whole number, 1 to 10000, not 0'],
  ['work q --once --drain -- true', 'give --once or --drain, not both'],
  ['work q --once -j 2 -- true', 'give --once or --jobs, not both'],
  ['work q --exit-codes 3 -- true', "--exit-codes '3' must be an exit code from 0 to 255 and an outcome"],
  ['work q --exit-codes 300=done -- true', "--exit-codes '300=done'"],
  ['work q --exit-codes 3=maybe -- true', "--exit-codes '3=maybe'"],
  ['work q --timeout soon -- true', "--timeout: 'soon'"],
  ['work q --timeout 90d -- true', '--timeout must be from 1 ms to 23 days'],
  ['work q --grace -1s -- true', "--grace: '-1s'"],
  ['work q --lease 10ms -- true', 'lease must be at least 100 ms'],
  ['work q --env A=B -- true', "--env 'A=B' is an invalid or reserved variable name"],
  ['work q --tasks xml -- true', 'tasks must be one of bytes, text, json'],
  ['wait q', "missing required argument 'id'"],
  ['wait q x --timeout never', "--timeout: 'never'"],
  ['job', 'missing command'],
  ['job frobnicate', "unknown command 'frobnicate'"],
  ['job show q', "missing required argument 'id'"],
  ['job ls q --state asleep', '--state must be one of blocked, scheduled'],
  ['job ls q --all --limit 3', 'give --limit or --all, not both'],
  ['job ls q --before 3', '--before must be an ISO time'],
  ['job update q x', 'job update: nothing to change: give --payload, --priority, --delay or --at'],
  ['job update q x --delay 1s --at 2026-12-24', 'give --delay or --at, not both'],
  ['job update q x --priority high', '--priority must be a whole number'],
  ['job update q x --payload {a', '--payload looks like JSON but is not'],
  ['job run-now q', "missing required argument 'id'"],
  ['job cancel q', 'job cancel: no jobs selected: give ids, a filter such as --match, or --all'],
  ['job cancel q x --state ready', 'job cancel: give only one of ids, a filter, or --all'],
  ['job cancel q --all --match x', 'job cancel: give only one of ids, a filter, or --all'],
  ['job cancel q --state done', "--state must be one of blocked, scheduled, ready, active, not 'done'"],
  ['dead retry q', 'dead retry: no jobs selected: give ids, a filter such as --match, or --all'],
  ['dead rm q x --all', 'give only one of ids, a filter, or --all'],
  ['queue ls --frobnicate', "unknown option '--frobnicate'"],
  ['queue pause', "missing required argument 'queue'"],
  ['schedule add n q', 'schedule add: no time given: use --cron'],
  ['schedule add n q {a:1} --every 1m', 'the payload looks like JSON but is not: '],
  ['schedule add n q --cron @never', 'is not a cron expression'],
  ['schedule add n q --every 1m --cron @daily', 'give --cron or --every, not both'],
  ['schedule add n q --every 1m --catch-up no', '--catch-up must be one of skip, last, all'],
  ['schedule add n q --every 1m --timezone Europe/Berlin', "'timezone' requires a cron expression"],
];

describe('invalid input on the command line', () => {
  it('is reported in one line, ends with exit code 2 and changes nothing', async () => {
    const all = await runMany(
      BAD.map(([args]) => args.split(' ')),
      { cwd: dir, env: { CRORE_STORE: line.url } },
    );
    for (const [i, [args, words]] of BAD.entries()) {
      const { code, out, err } = all[i]!;
      expect({ args, code, out, err }).toEqual({ args, code: 2, out: '', err: expect.stringContaining(words) });
      expect(err).toMatch(/^crore: .*\n$/);
    }
    const odd = await line.run(['push', '', 'x'], { cwd: dir });
    expect(odd).toMatchObject({ code: 2, err: 'crore: queue name must not be empty\n' });
    expect(readdirSync(dir)).toEqual(['data']);
  });

  it('does not create a store that is only to be read', async () => {
    const { code, err } = await line.run(['queue', 'ls'], { cwd: dir });
    expect({ code, err }).toEqual({
      code: 69,
      err: 'crore: no such file: none.db; use --store or CRORE_STORE to select another store\n',
    });
    expect(existsSync(join(dir, 'none.db'))).toBe(false);
  });

  it('reports in one line that a store cannot be reached, without its password', async () => {
    const { code, err } = await new Line('redis://user:secret@localhost:1').run(['queue', 'ls']);
    expect(code).toBe(69);
    expect(err.trim().split('\n')).toHaveLength(1);
    expect(err).not.toContain('secret');
  });
});

describe('a secret', () => {
  it('does not appear in messages about a malformed URL', async () => {
    const urls = [
      'redis://user:sec@ret@localhost:1',
      'redis:/user:secret@localhost',
      'redis:secret@localhost',
      'redis//:secret@localhost',
      'redis://localhost:secret',
      'redis://user:secret@localhost:99999',
      'redis://:secret@localhost/one/two',
      'redis://localhost?password=secret',
      'grpc://user:secret@localhost',
      'grpc://:sec@ret@localhost:1',
      'http://user:secret@localhost',
      'sqlite://user:secret@localhost/x',
      'redis+sentinel://localhost:1/main?sentinelPassword=secret',
    ];
    const answers = await runMany(urls.map((url) => ['queue', 'ls', '--store', url]));
    for (const [i, { code, err }] of answers.entries()) {
      expect(code, urls[i]).toBeGreaterThan(0);
      expect(err, urls[i]).toContain('crore: ');
      expect(err, urls[i]).not.toMatch(/secret|sec@ret|ret@/);
    }
  });

  it('given as a flag leads to advice', async () => {
    const { err } = await line.run(['queue', 'ls', '--store', 'redis://:secret@localhost:1']);
    expect(err).toContain('--store @FILE or $CRORE_STORE');
    const quiet = await new Line('redis://:secret@localhost:1').run(['queue', 'ls']);
    expect(quiet.err).not.toContain('warning');
  });
});

describe('the store of a command', () => {
  it('is --store, then CRORE_STORE, or the URL in a file', async () => {
    const url = `sqlite:${join(dir, 'flag.db')}`;
    const file = join(dir, 'url');
    writeFileSync(file, `${url}\n`);
    chmodSync(file, 0o600);
    expect((await line.run(['push', 'q', 'x', '--store', url], { cwd: dir })).code).toBe(0);
    expect(await line.json('queue', 'ls', '--store', `@${file}`)).toMatchObject([{ queue: 'q', ready: 1 }]);
    expect(existsSync(join(dir, 'none.db'))).toBe(false);
  });
});

describe('a password in the URL of a store', () => {
  it('is not visible in ps', async () => {
    const redis = await RedisServer.start(['--requirepass', 'secret'], { password: 'secret' });
    const url = `redis://:secret@localhost:${redis.port}`;
    const running = line.start(['push', 'q', '--store', url], { open: true });
    running.write('x\n');
    await running.says('\n');
    expect(readFileSync(`/proc/${running.pid}/cmdline`, 'latin1')).not.toContain('secret');
    running.endInput();
    expect((await running.ended).code).toBe(0);
    await redis.stop();
  });
});

describe('colours', () => {
  const terminal = (env: Record<string, string>) =>
    spawnSync(
      'script',
      ['-qec', `${process.execPath} ${bin} queue ls --store sqlite:${join(dir, 'flag.db')}`, '/dev/null'],
      {
        encoding: 'utf8',
        env: { ...process.env, TERM: 'xterm', NO_COLOR: '', ...env },
      },
    ).stdout;

  it('are only for terminals, and not if NO_COLOR is set', async () => {
    expect(terminal({})).toContain('\x1b[');
    expect(terminal({ NO_COLOR: '1' })).not.toContain('\x1b[');
    const { out } = await line.run(['queue', 'ls', '--store', `sqlite:${join(dir, 'flag.db')}`]);
    expect(out).toContain('QUEUE');
    expect(out).not.toContain('\x1b[');
  });
});

const OURS = ['push', 'work', 'wait', 'job', 'batch', 'dead', 'queue', 'events', 'worker', 'schedule'];

describe('help', () => {
  it('of every command and subcommand includes examples', async () => {
    const page = readFileSync(new URL('../../docs/commands.md', import.meta.url), 'utf8');
    const top = await runMany(OURS.map((name) => [name, '--help']));
    const below = OURS.flatMap((name, i) => {
      const listed = top[i]!.out.split('\nExamples:')[0]!.split('\nCommands:\n')[1] ?? '';
      return [...listed.matchAll(/^ {2}(\w+) /gm)]
        .map(([, word]) => [name, word!])
        .filter(([, word]) => word !== 'help');
    });
    expect(below).toContainEqual(['job', 'show']);
    const helps = [...top, ...(await runMany(below.map((words) => [...words, '--help'])))];
    for (const [i, words] of [...OURS.map((name) => [name]), ...below].entries()) {
      const { code, out, err } = helps[i]!;
      expect({ code, err }).toEqual({ code: 0, err: '' });
      expect(out).toMatch(
        new RegExp(`^Usage: crore ${words.join(' ')} [\\s\\S]*\\nExamples:\\n  .*crore ${words[0]} `),
      );
      for (const [option] of out.matchAll(/^ {2}(-\w, )?--[\w-]+/gm)) {
        expect(page, `${words.join(' ')}: ${option}`).toContain(option.trim().split(' ').at(-1)!);
      }
    }
  });

  it('tells crore work and crore worker apart, and lists them next to each other', async () => {
    const [all, work, worker] = await runMany([['--help'], ['work', '--help'], ['worker', '--help']]);
    expect(all!.out).toMatch(/\n {2}work QUEUE .* executable for each job of a queue.*\n {2}worker .*running flows/);
    const lines = (help: string) => help.split('\n\n')[1]!.split('\n');
    expect(lines(work!.out)[0]).toMatch(/^Run an executable for each job of a queue/);
    expect(lines(work!.out)[1]).toBe('To join running flows as a worker, see crore worker.');
    expect(lines(worker!.out)[0]).toMatch(/^Join running flows/);
    expect(lines(worker!.out)).toContain('To run an executable for the jobs of a queue, see crore work.');
  });

  it('of crore lists every command that docs/commands.md lists', async () => {
    const page = readFileSync(new URL('../../docs/commands.md', import.meta.url), 'utf8');
    const { out } = await line.run(['--help']);
    for (const { name, usage, summary } of COMMANDS) {
      expect(out).toContain(`${usage} `);
      if (!OURS.includes(name)) continue;
      expect(page).toContain(`\`crore ${usage.replaceAll('|', '\\|')}\``);
      expect(page).toContain(summary);
    }
  });
});

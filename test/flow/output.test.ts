import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { NodeTask } from '../../dist/flow/executors/executor.js';
import { type Status, statusLine } from '../../dist/flow/report/status-line.js';
import { clip, printable, textWidth } from '../../dist/flow/report/text-width.js';
import { lastLines } from '../../dist/process/captured-output.js';
import { bin, type Place, place } from './support.js';

const library = new URL('../../dist/flow/index.js', import.meta.url).href;

interface Shown {
  code: number;
  raw: string;
  /** What is on the screen at the end. */
  lines: string[];
  /** Everything the last line has been. */
  states: string[];
}

/** Runs the command on a terminal of that width. */
async function onTerminal(
  here: Place,
  args: string,
  { columns = 80, env = {} }: { columns?: number; env?: Record<string, string> } = {},
): Promise<Shown> {
  const line = `stty cols ${columns}; ${process.execPath} ${bin} run ${args}`;
  const { CRORE_STORE: _, ...inherited } = process.env;
  const terminal = spawn('script', ['-qec', line, '/dev/null'], {
    cwd: here.dir,
    env: { ...inherited, TERM: 'xterm', NO_COLOR: '', XDG_STATE_HOME: here.dir, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let raw = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
    raw += text;
  });
  const [code] = (await once(terminal, 'close')) as [number];
  return { code, raw, ...render(raw) };
}

/** A terminal that understands what a status line needs; colours are left out. */
function render(raw: string): { lines: string[]; states: string[] } {
  const lines: string[] = [''];
  const states: string[] = [];
  let column = 0;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: terminals are controlled by them
  for (const [part] of raw.matchAll(/\r|\n|\x1b\[K|\x1b\[[\d;]*m|[^\r\n\x1b]+/g)) {
    const line = lines.at(-1)!;
    if (part === '\n') lines.push('');
    else if (part === '\r') column = 0;
    else if (part === '\x1b[K') {
      states.push(line);
      lines[lines.length - 1] = line.slice(0, column);
    } else if (!part.startsWith('\x1b')) {
      lines[lines.length - 1] = line.slice(0, column) + part + line.slice(column + part.length);
      column += part.length;
    }
    if (part === '\n') column = 0;
  }
  return { lines, states };
}

const task = (id: string, startedAt: number) => ({ id, startedAt }) as NodeTask;
const status = (rest: Partial<Status>): Status => ({
  ended: 3,
  total: 10,
  failed: 0,
  restored: 0,
  running: new Set(),
  startedAt: 0,
  now: 6_000,
  ...rest,
});

describe('the status line', () => {
  it('has counts, the time left, and the running nodes, the longest first', () => {
    const running = new Set([task('slow', 1_000), task('b', 5_000), task('c', 5_500)]);
    expect(statusLine(status({ running, failed: 2 }), 80)).toBe(
      '[3/10] 30% 3 running, 2 failed, 14s to go: slow 5s, b, c',
    );
    expect(statusLine(status({ ended: 0, total: 0 }), 80)).toBe('[0/0] 100% 0 running');
    expect(statusLine(status({ restored: 3 }), 80)).toBe('[3/10] 30% 0 running');
  });

  it('has as many names as fit, at every width, also when characters are wide', () => {
    const ids = ['データの取得と変換', 'compile-the-program', '🚀🚀🚀', 'é̂tape', 'link', 'bell\u0007\u001b[2J'];
    const running = new Set(ids.map((id, i) => task(id, i * 100)));
    for (let columns = 1; columns < 120; columns++) {
      const line = statusLine(status({ running }), columns);
      expect(textWidth(line), line).toBeLessThanOrEqual(columns);
      expect(line).toBe(stripVTControlCharacters(line));
      if (columns === 60) expect(line).toBe('[3/10] 30% 6 running, 14s to go: データの取得と変換 6s +5');
      if (columns === 70) expect(line).toBe('[3/10] 30% 6 running, 14s to go: データの取得と変換 6s +5');
      if (columns === 119) expect(line.endsWith('link, bell\ufffd\ufffd[2J')).toBe(true);
    }
    const painted = statusLine(status({ running, failed: 1 }), 60, (text) => `\x1b[31m${text}\x1b[0m`);
    expect(stripVTControlCharacters(painted)).toBe(statusLine(status({ running, failed: 1 }), 60));
  });

  it('measures text by columns and cuts it between characters', () => {
    for (const [text, width] of [
      ['', 0],
      ['abc', 3],
      ['日本', 4],
      ['ｆｕｌｌ', 8],
      ['e\u0301', 1],
      ['한국', 4],
      ['🚀', 2],
      ['❤\ufe0f', 2],
      ['—', 1],
    ] as const)
      expect([text, textWidth(text)]).toEqual([text, width]);
    expect([clip('日本語', 6), clip('日本語', 5), clip('日本語', 4), clip('日本語', 1), clip('日本語', 0)]).toEqual([
      '日本語',
      '日本…',
      '日…',
      '…',
      '',
    ]);
    expect(printable('a\tb\u001b')).toBe('a\ufffdb\ufffd');
  });
});

describe('crore run on a terminal', () => {
  it('keeps output and status apart, counts the items of maps, and names what runs', async () => {
    const here = place();
    here.write(
      'f.yaml',
      [
        'nodes:',
        '  list: { run: "echo [1,2,3,4]" }',
        '  each: { run: "sleep 0.3; echo item $CRORE_ITEM; echo note $CRORE_ITEM >&2; printf rest", map: list }',
        '  sum: { run: "sleep 0.4; echo all $CRORE_RESULT_each", needs: [each] }',
        '',
      ].join('\n'),
    );
    const { code, lines, states } = await onTerminal(here, 'f.yaml -j 2');
    expect(code).toBe(0);
    const printed = lines.slice(0, -2).sort();
    expect(printed).toEqual(
      [
        ...[0, 1, 2, 3].flatMap((i) => [`each[${i}] | item ${i + 1}`, `each[${i}] | restnote ${i + 1}`]),
        'list | [1,2,3,4]',
        'sum | all ["rest","rest","rest","rest"]',
      ].sort(),
    );
    expect(lines.at(-2)).toMatch(/^3 of 3 done in \d/);
    expect(lines.at(-1)).toBe('');
    for (const state of states) expect(state).toMatch(/^$|^\[\d\/\d\] \d+% \d running/);
    // Three nodes, and four items when they are known.
    expect(states.some((state) => /^\[3\/7\] 42% 2 running, .* to go: each\[2\] \ds, each\[3\]$/.test(state))).toBe(
      true,
    );
    expect(states.some((state) => /^\[6\/7\] 85% 1 running, .*: sum \ds$/.test(state))).toBe(true);
  });

  it('has colours, but not with NO_COLOR', async () => {
    const here = place();
    here.write('f.json', {
      nodes: { a: { run: 'echo hi; sleep 0.3' }, b: { run: 'echo no >&2; exit 3', needs: ['a'] } },
    });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are made of them
    const colours = /\x1b\[[\d;]*m/;
    const { raw, lines } = await onTerminal(here, 'f.json');
    expect(raw).toContain('\x1b[31mfailed\x1b[0m  b');
    expect(raw).toContain('\x1b[2ma |\x1b[0m hi');
    const plain = await onTerminal(here, 'f.json', { env: { NO_COLOR: '1' } });
    expect(plain.raw).not.toMatch(colours);
    expect(plain.raw).toContain('\x1b[K');
    const seconds = (text: string) => text.replace(/\d+\.\d+ s/g, 'N s');
    expect(plain.lines.map(seconds)).toEqual(lines.map(seconds));
    const dumb = await onTerminal(here, 'f.json', { env: { TERM: 'dumb' } });
    expect(dumb.raw).not.toContain('\x1b');
    expect(here.crore('run', 'f.json').stdout).not.toContain('\x1b');
  });

  it.each([
    ['in processes', ''],
    ['in the runner', '--inline'],
  ])('keeps what functions print %s apart from the status', async (_where, option) => {
    const here = place();
    here.write(
      'f.mjs',
      `import { flow, node } from '${library}';
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export default flow({
  talks: node(async () => {
    for (let i = 0; i < 6; i++) {
      process.stdout.write('half a ');
      await wait(60);
      console.log('line', i);
      console.error('error', i);
    }
    process.stdout.write('without an end');
  }),
});`,
    );
    const { code, lines, states } = await onTerminal(here, `f.mjs ${option}`);
    expect(code).toBe(0);
    expect(lines.filter((line) => line.startsWith('half'))).toEqual([0, 1, 2, 3, 4, 5].map((i) => `half a line ${i}`));
    expect(lines.filter((line) => line.startsWith('error'))).toEqual([0, 1, 2, 3, 4, 5].map((i) => `error ${i}`));
    expect(lines).toContain('without an end');
    expect(lines).toHaveLength(15);
    expect(states.some((state) => state.includes('1 running: talks'))).toBe(true);
    for (const state of states) expect(state).toMatch(/^$|^\[\d\/\d\]/);
  });

  it('stays within a narrow terminal', async () => {
    const here = place();
    here.write('f.json', {
      nodes: { ['日本語のとても長い名前'.repeat(3)]: { run: 'sleep 0.4' }, b: { run: 'sleep 0.4' } },
    });
    const { states } = await onTerminal(here, 'f.json -j 2', { columns: 40 });
    expect(states.some((state) => state.includes('日本'))).toBe(true);
    for (const state of states) expect(textWidth(state)).toBeLessThan(40);
  });
});

describe('failures at the end', () => {
  const nodes = {
    short: { run: 'exit 7' },
    why: { run: 'echo the reason >&2; exit 3' },
    long: { run: 'seq 1 30; exit 1' },
    both: { run: 'echo out; echo first >&2; echo second >&2; exit 4' },
    list: { run: 'echo "[1,2]"' },
    each: { run: 'echo item $CRORE_ITEM is bad; test $CRORE_ITEM = 1', map: 'list', priority: -1 },
    fine: { run: 'echo fine', priority: 1 },
  };
  const list = (text: string) => text.slice(text.indexOf('failed nodes:\n')).split('\n');
  const expected = [
    'failed nodes:',
    '  short: exit 7',
    '  why: exit 3: the reason',
    '  long: exit 1',
    ...Array.from({ length: 10 }, (_, i) => `    | ${21 + i}`),
    '  both: exit 4: second',
    '    | first',
    '    | second',
    '  each[1]: exit 1',
    '    | item 2 is bad',
    '  each: each[1]: exit 1',
    expect.stringMatching(/^2 of 7 done, 5 failed in/),
    '',
  ];

  it.each([
    ['', []],
    [' with --quiet', ['-q']],
  ])('are listed with exit code, error and last lines%s', (_how, options) => {
    const here = place();
    here.write('f.json', { nodes });
    const { status, stdout, stderr } = here.crore('run', 'f.json', '-j', '1', '-k', ...options);
    expect(status).toBe(100);
    expect(list(stdout)).toEqual(expected);
    if (options.length > 0)
      expect({ stdout: stdout.indexOf('\nfailed nodes:'), stderr }).toEqual({ stdout: 0, stderr: '' });
  });

  it('are in the events, and in the journal for crore flow show', () => {
    const here = place();
    here.write('f.json', { name: 'shown', nodes });
    const store = ['--store', 'sqlite:flows.db'];
    const { stdout, stderr } = here.crore('run', 'f.json', '-j', '1', '-k', '--json', ...store);
    const events = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    const event = (id: string) => events.find((one) => one.id === id);
    expect(event('both')).toMatchObject({ state: 'failed', exit: 4, error: 'second', output: 'first\nsecond' });
    expect([event('short'), event('fine')].map((one) => one && 'output' in one)).toEqual([false, false]);
    expect(list(stderr)).toEqual(expected);
    const [flow] = here
      .crore('flow', 'ls', '--json', ...store)
      .stdout.trim()
      .split('\n');
    const { id } = JSON.parse(flow!) as { id: string };
    expect(here.crore('flow', 'show', id, ...store).stdout).toMatch(
      /\n {2}failed {2}both .* exit 4: second\n {10}\| first\n {10}\| second\n/,
    );
    const ends = here
      .crore('flow', 'show', id, '--json', ...store)
      .stdout.trim()
      .split('\n');
    expect(ends.map((line) => JSON.parse(line) as object)).toContainEqual(
      expect.objectContaining({ id: 'long', output: Array.from({ length: 10 }, (_, i) => 21 + i).join('\n') }),
    );
  });

  it('have what a function printed, also one that died', () => {
    const here = place();
    here.write(
      'f.mjs',
      `import { flow, node } from '${library}';
export default flow({
  throws: node(() => { console.log('before'); throw new Error('broken'); }),
  dies: node(() => { console.error('last words'); process.exit(5); }),
  fine: node(() => { console.log('all well'); }),
});`,
    );
    const { stdout, stderr } = here.crore('run', 'f.mjs', '-j', '1', '-k');
    expect(list(stdout)).toEqual([
      'failed nodes:',
      '  throws: broken',
      '    | before',
      '  dies: its worker process died (exit 5)',
      '    | last words',
      expect.stringMatching(/^1 of 3 done, 2 failed/),
      '',
    ]);
    // What functions print is not part of the output of the command.
    expect(stderr.split('\n').slice(0, 5).sort()).toEqual(['all well', 'before', ...Array(3).fill('last words')]);
  });

  it('keep at most 4 KiB of output, in whole characters', () => {
    expect([lastLines(''), lastLines(' \n\n'), lastLines('a\n\nb\n')]).toEqual([undefined, undefined, 'a\n\nb']);
    for (const char of ['x', 'é', '日', '🚀']) {
      const kept = lastLines(`start${char.repeat(9_000)}`)!;
      expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(4_096);
      expect(Buffer.byteLength(kept)).toBeGreaterThan(4_085);
      expect(kept).toMatch(new RegExp(`^…${char}+$`, 'u'));
    }
  });
});

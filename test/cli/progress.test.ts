import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Progress, progressText } from '../../dist/cli/progress.js';
import { freshSqlite } from '../support/stores.js';
import { type Desk, setUpDesk } from './support/setup.js';

const BIN = fileURLToPath(new URL('../../bin/crore', import.meta.url));

describe('progress', () => {
  it.each([
    [{ done: 12_000, total: 50_000, seconds: 0.95 }, '12,000 of 50,000 (24 %), 4 s left'],
    [{ done: 1, total: 1_000, seconds: 2 }, '1 of 1,000 (0 %), 33 min 18 s left'],
    [{ done: 1, total: 10_000, seconds: 2 }, '1 of 10,000 (0 %), 5 h 33 min left'],
    [{ done: 0, total: 10, seconds: 2 }, '0 of 10 (0 %)'],
    [{ done: 12, total: 10, seconds: 2 }, '12 of 12 (100 %), 0 s left'],
    [{ done: 9_000, share: 0.5, seconds: 10 }, '9,000 (50 %), 10 s left'],
    [{ done: 9_000, seconds: 3 }, '9,000, 3,000 per second'],
  ])('%j is shown as %s', (reached, text) => {
    expect(progressText(reached)).toBe(text);
  });

  /** A terminal that records what is written, and a clock to set. */
  function recorder(isTTY = true) {
    const recorded = { text: '', at: 0 };
    const terminal = { isTTY, columns: 30, write: (text: string) => (recorded.text += text) };
    return { recorded, options: { terminal, now: () => recorded.at } };
  }

  it('appears after a second, is renewed a few times per second, and is erased at the end', () => {
    const { recorded, options } = recorder();
    const progress = new Progress({ total: 100, ...options });
    const at = (ms: number, done: number) => {
      [recorded.at, recorded.text] = [ms, ''];
      progress.report(done);
      return recorded.text;
    };
    expect(at(900, 10)).toBe('');
    expect(at(1_000, 20)).toBe('\r\x1b[K20 of 100 (20 %), 4 s left');
    expect(at(1_100, 30)).toBe('');
    expect(at(1_200, 40)).toBe('\r\x1b[K40 of 100 (40 %), 2 s left');
    progress.end();
    expect(recorded.text.endsWith('\r\x1b[K')).toBe(true);
    expect(at(9_000, 90)).toBe('');
  });

  it('leaves nothing on the terminal if it never appeared, and fits a narrow one', () => {
    const { recorded, options } = recorder();
    const progress = new Progress({ total: 1_000_000, ...options });
    progress.report(500);
    progress.end();
    expect(recorded.text).toBe('');
    const later = new Progress({ total: 1_000_000, ...options });
    recorded.at = 2_000;
    later.report(500_000);
    expect(stripVTControlCharacters(recorded.text).trim()).toBe('500,000 of 1,000,000 (50 %),…');
    later.end();
  });

  it('is for terminals only', () => {
    const { recorded, options } = recorder(false);
    const progress = new Progress(options);
    recorded.at = 2_000;
    progress.report(1);
    progress.end();
    expect(recorded.text).toBe('');
  });
});

describe('a long push from standard input', () => {
  let { store, line, name, queue } = {} as Desk;
  setUpDesk('progress', freshSqlite, (desk) => {
    ({ store, line, name, queue } = desk);
  });
  // Some lines have to come after the first second, however long the command takes to start.
  const slowly = '{ for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.5; done; }';

  it('shows count and rate on a terminal, and erases them before it prints anything else', async () => {
    const push = `${process.execPath} ${BIN} push ${name}`;
    const { stdout, status } = spawnSync('script', ['-qec', `${slowly} | ${push}`, '/dev/null'], {
      encoding: 'utf8',
      env: { ...process.env, TERM: 'xterm', CRORE_STORE: store.url },
    });
    expect(status).toBe(0);
    expect(stdout.replaceAll('\r\x1b[K', '<')).toMatch(/<\d, \d+ per second<[\da-f-]{36}\r\n/);
    expect(stdout.trimEnd().split('\r').at(-1)).not.toContain('per second');
    expect(await queue.count()).toMatchObject({ ready: 8 });
  });

  it('shows nothing elsewhere', () => {
    const { stderr } = spawnSync('sh', ['-c', `${slowly} | "$0" "$1" push ${name}`, process.execPath, BIN], {
      encoding: 'utf8',
      env: { ...process.env, CRORE_STORE: line.url },
    });
    expect(stderr).toBe('');
  });
});

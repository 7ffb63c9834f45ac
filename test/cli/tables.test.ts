import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { displayWidth, pad, shorten } from '../../dist/cli/display-width.js';
import { freshSqlite } from '../support/stores.js';
import { type Desk, setUpDesk } from './support/setup.js';

const BIN = fileURLToPath(new URL('../../bin/crore', import.meta.url));

describe('the width of text on a terminal', () => {
  it.each([
    ['', 0],
    ['plain', 5],
    ['äöü', 3],
    ['e\u0301a\u0308', 2],
    ['東京', 4],
    ['ｶﾞ', 2],
    ['한국', 4],
    ['🎉', 2],
    ['👩‍👩‍👧‍👦', 2],
    ['👍🏽', 2],
    ['🇩🇪', 2],
    ['❤\ufe0f', 2],
    ['1\ufe0f\u20e3', 2],
    ['a\u200bb', 2],
    ['…', 1],
    ['\ud83d', 1],
  ])('of %j is %i', (text, width) => {
    expect(displayWidth(text)).toBe(width);
  });

  it('decides how text is padded and where it is cut, never within a character', () => {
    expect(pad('東', 4)).toBe('東  ');
    expect(pad('東', 4, 'left')).toBe('  東');
    expect(shorten('東京都', 6)).toBe('東京都');
    expect(shorten('東京都', 5)).toBe('東京…');
    expect(shorten('東京都', 4)).toBe('東…');
    expect(shorten('ae\u0301iou', 3)).toBe('ae\u0301…');
    expect(shorten('abc', 1)).toBe('…');
  });
});

describe('a table', () => {
  let { store, line, name, queue } = {} as Desk;
  setUpDesk('tables', freshSqlite, (desk) => {
    ({ store, line, name, queue } = desk);
  });

  /** What `crore ARGS` prints on a terminal with this many columns, line by line. */
  function onTerminal(columns: number, ...args: string[]): string[] {
    const command = `stty cols ${columns}; ${process.execPath} ${BIN} ${args.join(' ')}`;
    const env = { ...process.env, TERM: 'xterm', CRORE_STORE: store.url };
    const { stdout } = spawnSync('script', ['-qec', command, '/dev/null'], { encoding: 'utf8', env });
    return stripVTControlCharacters(stdout).trimEnd().split(/\r?\n/);
  }

  it('is aligned by what a reader sees', async () => {
    for (const [id, payload] of [
      ['東京', 'ascii'],
      ['cafe\u0301', '🎉🎉'],
      ['plain', 'x'],
    ]) {
      await queue.add(payload, { id });
    }
    const [head, ...rows] = (await line.run(['job', 'ls', name])).out.trimEnd().split('\n');
    const place = (text: string, word: string) => displayWidth(text.slice(0, text.indexOf(word)));
    for (const row of rows) expect(place(row, 'ready')).toBe(place(head!, 'STATE'));
    for (const [i, word] of ['ascii', '🎉🎉', 'x'].entries()) {
      expect(place(rows[i]!, word)).toBe(place(head!, 'PAYLOAD'));
    }
  });

  it('fits the terminal: long texts are shortened, ids of jobs are not', async () => {
    const id = 'order-0123456789-0123456789';
    await queue.add('東'.repeat(10) + 'x'.repeat(40), { id });
    for (const columns of [70, 80, 100]) {
      const lines = onTerminal(columns, 'job', 'ls', name);
      for (const text of lines) expect(displayWidth(text), text).toBeLessThanOrEqual(columns);
      expect(lines[0]).toMatch(/^ID +STATE +ATTEMPT +TIME +PAYLOAD +ERROR$/);
      expect(lines[1]).toContain(`${id}  `);
      expect(lines[1]).toMatch(/東x*…/);
    }
    const wide = onTerminal(300, 'job', 'ls', name);
    expect(wide[1]).toContain('x'.repeat(40));
    const [narrow] = onTerminal(48, 'job', 'ls', name).slice(1);
    expect(displayWidth(narrow!)).toBeLessThanOrEqual(48);
    expect(narrow).toMatch(/^order-0[\d-]*…/);
  });

  it('fits the terminal on its later pages, too', async () => {
    await queue.addMany(Array.from({ length: 150 }, (_x, i) => ({ payload: 'x'.repeat(i), id: `j${i}` })));
    const lines = onTerminal(90, 'job', 'ls', name, '--all');
    expect(lines).toHaveLength(151);
    for (const text of lines) expect(displayWidth(text), text).toBeLessThanOrEqual(90);
  });

  it('is never shortened when it goes elsewhere', async () => {
    await queue.addMany(
      Array.from({ length: 150 }, (_x, i) => ({ payload: 'x'.repeat(Math.floor(i / 3)), id: `j${i}` })),
    );
    const { out } = await line.run(['job', 'ls', name, '--all'], { env: { COLUMNS: '40' } });
    expect(out).not.toContain('…');
    expect(out).toContain(`${'x'.repeat(49)}\n`);
  });
});

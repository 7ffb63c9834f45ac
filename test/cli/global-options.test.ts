import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { Line } from './support/crore.js';

it('--store and --json may be given before the command; a later one wins', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'crore-options-'));
  const line = new Line('sqlite:none.db');
  const url = `sqlite:${join(dir, 'before.db')}`;
  const other = `sqlite:${join(dir, 'other.db')}`;
  const run = (...args: string[]) => line.run(args, { cwd: dir });
  expect((await run('--store', url, 'push', 'early', '--', '-1')).code).toBe(0);
  const listed = '{"queue":"early","blocked":0,';
  expect((await run('--store', url, '--json', 'queue', 'ls')).out).toContain(listed);
  expect((await run('--json', `--store=${url}`, 'queue', 'ls', 'early')).out).toContain(listed);
  expect((await run('--store', other, 'queue', 'ls', '--store', url, '--json')).out).toContain(listed);
  expect((await run('--store', url, 'worker', 'ls')).code).toBe(0);
  expect((await run('--store', url, 'work', 'early', '--once', '-q', '--', 'echo', '{}', '--json')).out).toBe(
    '-1 --json\n',
  );
  const help = await run('--store', url, 'queue', '--help');
  expect(help).toMatchObject({ code: 0, out: expect.stringContaining('Usage: crore queue ') });
  expect((await run('--json', '--help')).out).toContain('Usage: crore COMMAND');
  expect((await run('--json', 'help', 'queue')).out).toContain('Usage: crore queue ');
  expect(existsSync(join(dir, 'none.db'))).toBe(false);
  rmSync(dir, { recursive: true });
});

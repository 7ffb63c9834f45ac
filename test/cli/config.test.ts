import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { inFolder } from '../ring/support/w8y.js';
import { Line } from './support/crore.js';

it.each([
  ['max_retry = 3\naddr = \n', 2, 8],
  ['# settings\n\nmax_retry 3\n', 3, 11],
  ['store = "sqlite:a.db\n', 1, 21],
  ['sweep = 1\nsweep = 2\n', 2, 1],
])('a config file with an error, %j, is refused with line %i and column %i, in one line', async (text, row, column) => {
  await inFolder(async (dir) => {
    writeFileSync(join(dir, 'bad.toml'), text);
    for (const command of ['config', 'serve']) {
      const { code, out, err } = await new Line('').run([command, '--config', 'bad.toml'], { cwd: dir });
      expect({ code, out }).toEqual({ code: 2, out: '' });
      expect(err).toMatch(/^crore: config bad\.toml, line \d+, column \d+: (?!Invalid TOML)[^\n]{3,100}\n$/);
      expect(err).toContain(`line ${row}, column ${column}: `);
    }
  });
});

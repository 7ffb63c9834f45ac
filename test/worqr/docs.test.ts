import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, inject, it } from 'vitest';
import { Worqr } from '../../dist/worqr/index.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/worqr.md'), 'utf8');
const run = (file: string, cwd: string, ...args: string[]) => {
  const env = { ...process.env, NODE_NO_WARNINGS: '1' };
  return spawnSync(process.execPath, [file, ...args], { cwd, env, encoding: 'utf8', timeout: 50_000 });
};

describe('the documentation of Worqr', () => {
  it('lists exactly the existing methods', () => {
    const rows = [...page.matchAll(/^\| `(\w+)\(/gm)].map(([, name]) => name!);
    const methods = Object.getOwnPropertyNames(Worqr.prototype).filter((name) => name !== 'constructor');
    expect(rows.sort()).toEqual(methods.sort());
  });

  it.each([
    ['redis', () => `${inject('redisUrl')}?prefix=worqr-docs-${process.pid}`],
    ['sqlite', () => 'sqlite:worqr.db'],
  ])('has a first code example that works on %s', (_name, url) => {
    const code = /```js\n([\s\S]*?)```/.exec(page)![1]!;
    const dir = mkdtempSync(join(tmpdir(), 'crore-worqr-'));
    const library = new URL('../../dist/worqr/index.js', import.meta.url).href;
    const end =
      "\nlet ends = 0;\nworqr.on('mails', (type) => { if (type === 'done' && ++ends === 2) void worqr.close(); });\n";
    writeFileSync(
      join(dir, 'page.mjs'),
      code
        .replace("'crore/worqr'", `'${library}'`)
        .replace("'redis://localhost:6379'", `'${url()}'`)
        .replace('await worqr.startWorker();', `${end}await worqr.startWorker();`),
    );
    const { stdout, status } = run('page.mjs', dir);
    rmSync(dir, { recursive: true });
    expect({ stdout, status }).toEqual({ stdout: 'working on to ada\nworking on to bob\n', status: 0 });
  });

  it('has an example that moves the connections of a killed process to the other one', () => {
    const { stdout, status } = run(join(root, 'examples/persistent-tasks.mjs'), root);
    expect(status).toBe(0);
    const lines = stdout.trim().split('\n');
    expect(lines.slice(0, 5)).toEqual([
      'ada opens mars',
      'ada opens venus',
      'bob opens pluto',
      'bob opens ceres',
      'ada is killed',
    ]);
    expect(lines.slice(5).sort()).toEqual(['bob has ceres, mars, pluto, venus', 'bob opens mars', 'bob opens venus']);
  });
});

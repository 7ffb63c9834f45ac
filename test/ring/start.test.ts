import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { ring } from '../../dist/ring/command.js';
import { BIN, inFolder, run } from './support/w8y.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

function cacheRejected(dist: string): boolean | undefined {
  const source = readFileSync(join(dist, 'w8y.bundle.js'), 'latin1');
  return new Script(source, { cachedData: readFileSync(join(dist, 'w8y.cache')) }).cachedDataRejected;
}

describe('bin/w8y', () => {
  it('runs through a link, as npm installs it, from any folder', async () => {
    await inFolder(async (dir) => {
      mkdirSync(join(dir, 'bin'));
      symlinkSync(BIN, join(dir, 'real'));
      symlinkSync('../real', join(dir, 'bin', 'w8y'));
      const { code, out } = await run(['-h'], { command: [join(dir, 'bin', 'w8y')], cwd: dir });
      expect({ code, usage: out.startsWith('Usage: w8y') }).toEqual({ code: 0, usage: true });
    });
  });

  it.each([
    ['node', [process.execPath, BIN]],
    ['sh', ['sh', BIN]],
    ['bash', ['bash', BIN]],
  ])('runs under %s as well', async (_, command) => {
    expect((await run(['-h'], { command })).out).toMatch(/^Usage: w8y/);
  });

  it('builds itself in a checkout that has no build yet, with a code cache that this Node accepts', async () => {
    await inFolder(async (dir) => {
      for (const name of ['bin', 'scripts', 'src', 'package.json', 'package-lock.json', 'tsconfig.json', '.npmrc']) {
        cpSync(join(root, name), join(dir, name), { recursive: true });
      }
      symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
      const { code, out } = await run(['-h'], { command: [join(dir, 'bin', 'w8y')] });
      expect({ code, usage: out.startsWith('Usage: w8y') }).toEqual({ code: 0, usage: true });
      expect(existsSync(join(dir, 'dist', 'w8y.cjs'))).toBe(true);
      expect(cacheRejected(join(dir, 'dist'))).toBe(false);
    });
  });

  it('loads no more than it needs: no client library, no SQLite, no process module for a ring without work', () => {
    const probe = `process.on('exit', () => console.log(JSON.stringify([process.moduleLoadList, Object.keys(require.cache)])));
      process.argv = ['node', 'w8y', '-q', '-u', 'redis://localhost:1', '-k', 'x', 'true'];
      require(${JSON.stringify(join(root, 'dist', 'w8y.cjs'))});`;
    const { stdout } = spawnSync(process.execPath, ['-e', probe], { encoding: 'utf8' });
    const [builtins, files] = JSON.parse(stdout) as [string[], string[]];
    expect(builtins).toContain('NativeModule net');
    for (const name of ['child_process', 'tls', 'crypto', 'dns'])
      expect(builtins).not.toContain(`NativeModule ${name}`);
    expect(files.filter((file) => !file.endsWith('w8y.cjs'))).toEqual([]);
  });

  it('starts without a code cache, with half of one, and with one of another version', async () => {
    await inFolder(async (dir) => {
      for (const name of ['w8y.cjs', 'w8y.bundle.js']) cpSync(join(root, 'dist', name), join(dir, name));
      expect((await run(['-h'], { command: [process.execPath, join(dir, 'w8y.cjs')] })).code).toBe(0);
      const cache = readFileSync(join(root, 'dist', 'w8y.cache'));
      for (const foreign of [cache.subarray(0, 1000), Buffer.from(cache).fill(7, 4, 8)]) {
        writeFileSync(join(dir, 'w8y.cache'), foreign);
        expect((await run(['-h'], { command: [process.execPath, join(dir, 'w8y.cjs')] })).code).toBe(0);
      }
    });
  });
});

describe('the command as a function', () => {
  it('gives back the exit code and leaves the process alone', async () => {
    const before = process.listenerCount('SIGTERM');
    expect(await ring(['-q', '-u', 'redis://localhost:1', '-k', 'x', 'true'])).toBe(2);
    await new Promise((resolve) => setImmediate(resolve));
    expect(process.listenerCount('SIGTERM')).toBe(before);
  });
});

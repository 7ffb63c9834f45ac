import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { ring } from '../../dist/ring/command.js';
import { BIN, inFolder, run } from './support/w8y.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

const CRORE = join(root, 'bin', 'crore');

/** A cache belongs to one build: the next bundle may have the same length, and V8 would not tell them apart. */
function cacheOf(dist: string, start: string): string {
  const [command] = start.split('-');
  const bundle = readFileSync(join(dist, `${command}.bundle.js`));
  const mark = createHash('sha256').update(bundle).digest('hex').slice(0, 12);
  return join(dist, 'cache', `${start}-${mark}-${process.version}-${process.arch}`);
}

function cacheRejected(dist: string, command: string, start: string): boolean | undefined {
  const source = readFileSync(join(dist, `${command}.bundle.js`), 'latin1');
  return new Script(source, { cachedData: readFileSync(cacheOf(dist, start)) }).cachedDataRejected;
}

describe('bin/w8y', () => {
  it('runs through a symlink, as installed by npm, from any folder', async () => {
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
  ])('also runs under %s', async (_, command) => {
    expect((await run(['-h'], { command })).out).toMatch(/^Usage: w8y/);
  });

  it('builds itself in a checkout without a build, with code caches that this Node accepts', {
    timeout: 240_000,
  }, async () => {
    await inFolder(async (dir) => {
      for (const name of ['bin', 'scripts', 'src', 'package.json', 'package-lock.json', 'tsconfig.json', '.npmrc']) {
        cpSync(join(root, name), join(dir, name), { recursive: true });
      }
      symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'));
      const { code, out } = await run(['-h'], { command: [join(dir, 'bin', 'w8y')] });
      expect({ code, usage: out.startsWith('Usage: w8y') }).toEqual({ code: 0, usage: true });
      expect(existsSync(join(dir, 'dist', 'w8y.cjs'))).toBe(true);
      expect(cacheRejected(join(dir, 'dist'), 'w8y', 'w8y-start')).toBe(false);
      expect(cacheRejected(join(dir, 'dist'), 'run', 'run-run')).toBe(false);
      expect(cacheRejected(join(dir, 'dist'), 'push', 'push-push')).toBe(false);
      const version = await run(['--version'], { command: [join(dir, 'bin', 'crore')] });
      expect(version.out).toMatch(/^\d+\.\d+\.\d+\n$/);
    });
  });

  it('loads only what it needs: no client library, SQLite or process module for a ring without work', () => {
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

  it('starts without a code cache and creates one, and with a truncated or outdated one', async () => {
    await inFolder(async (dir) => {
      for (const name of ['w8y.cjs', 'w8y.bundle.js']) cpSync(join(root, 'dist', name), join(dir, name));
      const start = async () => (await run(['-h'], { command: [process.execPath, join(dir, 'w8y.cjs')] })).code;
      writeFileSync(join(dir, 'cache'), ''); // it cannot be written anywhere
      expect(await start()).toBe(0);
      rmSync(join(dir, 'cache'));
      expect(await start()).toBe(0);
      expect(cacheRejected(dir, 'w8y', 'w8y-start')).toBe(false);
      expect(readdirSync(join(dir, 'cache'))).toHaveLength(1);
      const cache = readFileSync(cacheOf(dir, 'w8y-start'));
      for (const foreign of [cache.subarray(0, 1000), Buffer.from(cache).fill(7, 4, 8)]) {
        writeFileSync(cacheOf(dir, 'w8y-start'), foreign);
        expect(await start()).toBe(0);
      }
    });
  });
});

describe('bin/crore', () => {
  it('runs through a symlink, as installed by npm, from any folder, and under node', async () => {
    await inFolder(async (dir) => {
      mkdirSync(join(dir, 'bin'));
      symlinkSync(CRORE, join(dir, 'real'));
      symlinkSync('../real', join(dir, 'bin', 'crore'));
      for (const command of [[join(dir, 'bin', 'crore')], [process.execPath, CRORE]]) {
        const { code, out } = await run(['--help'], { command, cwd: dir });
        expect({ code, usage: out.startsWith('Usage: crore') }).toEqual({ code: 0, usage: true });
      }
    });
  });

  it('creates a code cache for each command and kind of store that succeeded, and none for a mistyped one or a payload', async () => {
    await inFolder(async (dir) => {
      mkdirSync(join(dir, 'cache'));
      for (const name of ['crore.cjs', 'crore.bundle.js', 'push.bundle.js'])
        cpSync(join(root, 'dist', name), join(dir, name));
      const command = [process.execPath, join(dir, 'crore.cjs')];
      const good = [['--help'], ['push', '--help'], ['push', '--help', '--store', 'redis://localhost']];
      const mistyped = [
        ['pusj', '--help'],
        ['push', '--nonsense'],
        ['constructor', '--help'],
      ];
      for (const args of [...good, ...mistyped, ['push', '--help', 'a redisX://b']])
        await run(args, { command, cwd: dir });
      const names = ['crore-help', 'push-push', 'push-push-redis'].map((start) => basename(cacheOf(dir, start)));
      expect(readdirSync(join(dir, 'cache')).sort()).toEqual(names);
    });
  });

  it('runs a small flow without loading a database, a YAML parser, crypto or files beside its bundle', async () => {
    await inFolder(async (dir) => {
      writeFileSync(join(dir, 'flow.json'), '{"nodes":{"a":{"run":"true"}}}');
      const probe = `process.on('exit', () => console.log(JSON.stringify([process.moduleLoadList, Object.keys(require.cache)])));
        process.argv = ['node', 'crore', 'run', 'flow.json', '-q'];
        require(${JSON.stringify(join(root, 'dist', 'crore.cjs'))});`;
      const { stdout } = spawnSync(process.execPath, ['-e', probe], { encoding: 'utf8', cwd: dir });
      const [builtins, files] = JSON.parse(stdout) as [string[], string[]];
      for (const name of ['crypto', 'worker_threads', 'http', 'tls', 'perf_hooks'])
        expect(builtins).not.toContain(`NativeModule ${name}`);
      expect(files.filter((file) => !file.endsWith('crore.cjs'))).toEqual([]);
    });
  });
});

describe('the command as a function', () => {
  it('returns the exit code and does not end the process', async () => {
    const before = process.listenerCount('SIGTERM');
    expect(await ring(['-q', '-u', 'redis://localhost:1', '-k', 'x', 'true'])).toBe(2);
    await new Promise((resolve) => setImmediate(resolve));
    expect(process.listenerCount('SIGTERM')).toBe(before);
  });
});

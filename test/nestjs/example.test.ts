import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { open } from '../../dist/index.js';
import { until } from '../support/wait.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const example = join(root, 'examples', 'nestjs');
const sources = readdirSync(example).filter((name) => name.endsWith('.ts'));

describe.each(['module', 'commonjs'])('examples/nestjs as %s', (type) => {
  let dir: string;
  let child: ChildProcess | undefined;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'crore-nest-'));
    mkdirSync(join(dir, 'node_modules', '@types'), { recursive: true });
    symlinkSync(root, join(dir, 'node_modules', 'crore'));
    for (const name of ['@nestjs', 'reflect-metadata', 'rxjs', 'undici-types', '@types/node'])
      symlinkSync(join(root, 'node_modules', name), join(dir, 'node_modules', name));
    writeFileSync(join(dir, 'package.json'), JSON.stringify({ type }));
    for (const name of [...sources, 'tsconfig.json'])
      writeFileSync(join(dir, name), readFileSync(join(example, name), 'utf8'));
  });
  afterAll(() => {
    child?.kill('SIGKILL');
    rmSync(dir, { recursive: true });
  });

  it('compiles with its own tsconfig.json', () => {
    expect(compile(dir)).toEqual([]);
  });

  it('sends three mails; SIGTERM tells the job in hand, returns it, and ends the process', async () => {
    const url = `sqlite:${join(dir, 'mails.db')}`;
    let [out, errors] = ['', ''];
    child = spawn(process.execPath, [join(dir, 'dist', 'main.js')], { env: { ...process.env, CRORE_STORE: url } });
    child.stdout!.on('data', (chunk) => {
      out += chunk;
    });
    child.stderr!.on('data', (chunk) => {
      errors += chunk;
    });
    const gone = once(child, 'exit');
    await until(
      () => `it is ready: ${errors}`,
      () => out.endsWith('ready\n'),
    );
    expect(out).toBe('sent to ada\nsent to bob\nsent to cid\nready\n');

    await using crore = await open(url);
    const slow = await crore.queue('mails').add({ to: 'dora', takes: 60_000 });
    await until('it is in hand', async () => (await slow.state()) === 'active');
    const before = performance.now();
    child.kill('SIGTERM');
    expect(await gone).toEqual([null, 'SIGTERM']); // Nest ends the process with the signal it got
    expect(performance.now() - before).toBeLessThan(4_500); // the handler ended with its signal: no need for the grace
    expect(await slow.get()).toMatchObject({ state: 'ready', attempt: 0, attempts: [], crashes: 0 });
    expect(await crore.queue('mails').workers()).toEqual([]);
  });
});

describe('docs/nestjs.md', () => {
  it('shows the files of the example as they are', () => {
    const page = readFileSync(join(root, 'docs', 'nestjs.md'), 'utf8');
    const shown = [...page.matchAll(/```ts\n\/\/ (\S+\.ts)\n([\s\S]*?)```/g)].map(([, name, code]) => [name, code]);
    expect(shown.map(([name]) => name).sort()).toEqual([...sources].sort());
    for (const [name, code] of shown) expect(code).toBe(readFileSync(join(example, name!), 'utf8'));
  });
});

/** Compiles an application as `tsc -p` does; returns what the compiler has to say. */
function compile(dir: string): string[] {
  const { config } = ts.readConfigFile(join(dir, 'tsconfig.json'), ts.sys.readFile);
  const { options, fileNames } = ts.parseJsonConfigFileContent(config, ts.sys, dir);
  const program = ts.createProgram(fileNames, { ...options, rootDir: dir, preserveSymlinks: true });
  const { diagnostics } = program.emit();
  return [...ts.getPreEmitDiagnostics(program), ...diagnostics].map(
    ({ file, messageText }) => `${file?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
  );
}

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, inject, it } from 'vitest';
import { ERRORS } from '../../dist/index.js';
import { STATES } from '../../dist/job/job.js';
import { TRANSITIONS } from '../../dist/job/states.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** As Node 20 can run it. */
function withoutTypes(code: string): string {
  const compilerOptions = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ES2022, verbatimModuleSyntax: true };
  // A block that mentions import.meta is a module, which TypeScript marks.
  return ts.transpileModule(code, { compilerOptions }).outputText.replace(/^export \{\};\n/m, '');
}

/** Rows of the Markdown table whose header starts with these words. */
function table(text: string, ...words: string[]): string[][] {
  const rows = text.split('\n').map((line) =>
    line.startsWith('|')
      ? line
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim())
      : undefined,
  );
  const header = rows.findIndex((row) => row && words.every((word, i) => row[i] === word));
  const end = rows.findIndex((row, i) => i > header && row === undefined);
  return rows.slice(header + 2, end < 0 ? undefined : end) as string[][];
}

describe('the documentation matches the code', () => {
  it('states: the table of transitions', () => {
    const rows = table(read('docs/states.md'), 'from', 'event');
    expect(rows).toEqual(TRANSITIONS.map(({ from, event, to, when }) => [from, event, to, when]));
  });

  it('states: every state can be reached, and left', () => {
    for (const state of STATES)
      expect(
        TRANSITIONS.some(({ to }) => to === state),
        state,
      ).toBe(true);
    expect(STATES.filter((state) => !TRANSITIONS.some(({ from }) => from === state))).toEqual([]);
  });

  it('errors: every code with its meaning', () => {
    const rows = table(read('docs/errors.md'), 'code', 'meaning');
    const known = Object.entries(ERRORS).map(([code, { meaning, grpc, exit }]) => [
      `\`${code}\``,
      meaning,
      grpc,
      `${exit}`,
    ]);
    expect(rows).toEqual(known);
    const exits = table(read('docs/errors.md'), 'exit', 'meaning').map(([exit]) => exit);
    expect(known.map(([, , , exit]) => exit).filter((exit) => !exits.includes(exit))).toEqual([]);
  });

  it('README: the twelve lines run and print what they promise', () => {
    const code = withoutTypes(/```ts\n([\s\S]*?)```/.exec(read('README.md'))![1]!);
    const dir = mkdtempSync(join(tmpdir(), 'crore-readme-'));
    const file = join(dir, 'twelve.mjs');
    const library = new URL('../../dist/index.js', import.meta.url).href;
    writeFileSync(file, code.replace("'crore'", `'${library}'`));
    const { stdout, stderr, status } = spawnSync(process.execPath, [file], {
      cwd: dir,
      encoding: 'utf8',
      timeout: 30_000,
    });
    rmSync(dir, { recursive: true });
    expect({ status, stderr, stdout }).toEqual({
      status: 0,
      stderr: '',
      stdout: 'mail to ada@example.org\n{ sent: true }\n',
    });
  });

  it.each([
    ['sqlite', () => 'sqlite:guide.db'],
    ['redis', () => `${inject('redisUrl')}?prefix=guide`],
  ])('guide: every code example runs on %s', (_name, url) => {
    const blocks = [...read('docs/guide.md').matchAll(/```ts\n([\s\S]*?)```/g)].map(([, code]) => code!);
    const nameOf = (code: string) => /^\/\/ (\S+\.js)\n/.exec(code)?.[1];
    const pieces = blocks.filter((code) => !nameOf(code)).map((code) => `{\n${withoutTypes(code)}}`);
    const dir = mkdtempSync(join(tmpdir(), 'crore-guide-'));
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
    // A block that begins with the name of a file is that file.
    for (const code of blocks.filter(nameOf)) writeFileSync(join(dir, nameOf(code)!), withoutTypes(code));
    const library = new URL('../../dist/index.js', import.meta.url).href;
    const open = `import { open } from '${library}';\nconst crore = await open('${url()}', { onError: () => {}, logger: false });\n`;
    writeFileSync(join(dir, 'guide.mjs'), `${open}${pieces.join('\n')}\nawait crore.close();\n`);
    const { stdout, stderr, status } = spawnSync(process.execPath, ['guide.mjs'], {
      cwd: dir,
      encoding: 'utf8',
      timeout: 50_000,
    });
    rmSync(dir, { recursive: true });
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    for (const line of [
      "[ 'poll → polls', 'report → reports' ]",
      'replaced',
      'done mails',
      '1 2 1',
      '341332933',
      'a row needs a name',
      "{ tenant: '7' }",
      'not negative',
    ])
      expect(stdout).toContain(line);
  });

  it('links have existing targets', () => {
    const pages = [
      'README.md',
      'CONTRIBUTING.md',
      ...readdirSync(join(root, 'docs'), { recursive: true }).map((name) => `docs/${name}`),
    ];
    for (const page of pages.filter((name) => name.endsWith('.md'))) {
      for (const [, target] of read(page).matchAll(/\]\((?!https?:)([^)#]+)\)/g)) {
        expect(() => readdirOrFile(resolve(root, dirname(page), target!)), `${page} → ${target}`).not.toThrow();
      }
    }
  });
});

function readdirOrFile(path: string): void {
  try {
    readFileSync(path);
  } catch {
    readdirSync(path);
  }
}

describe('the structure of the source', () => {
  /** A folder may import from itself and from folders further down. `.` is the library itself, the files of src/. */
  const ORDER = [
    'cli',
    'grpc',
    'dashboard',
    'nestjs',
    'flow',
    'worqr',
    'testing',
    'outbox',
    '.',
    'queue',
    'ring',
    'pool',
    'process',
    'worker',
    'engine',
    'store',
    'job',
    'proto',
  ];
  /** Folders that every other may import from. */
  const COMMON = ['errors.ts', 'redact.ts', 'url.ts', 'version.ts'];

  const files = readdirSync(join(root, 'src'), { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.ts'));
  const folder = (file: string) => (file.includes('/') ? file.split('/')[0]! : '.');

  it('imports follow cli → grpc | dashboard | nestjs → flow | worqr → library → ring | worker → engine → store → job', () => {
    const wrong: string[] = [];
    for (const file of files) {
      const text = readFileSync(join(root, 'src', file), 'utf8');
      for (const [, target] of text.matchAll(/(?:from|import\(|new URL\()\s*'(\.[^']+\.js)'/g)) {
        const path = relative(join(root, 'src'), resolve(root, 'src', dirname(file), target!)).replace(/\.js$/, '.ts');
        if (COMMON.includes(path)) continue;
        if (ORDER.indexOf(folder(path)) < ORDER.indexOf(folder(file))) wrong.push(`${file} imports ${path}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it('no folder has too many files', () => {
    const folders = new Map<string, number>();
    for (const file of readdirSync(join(root, 'src'), { recursive: true, withFileTypes: true })) {
      if (file.isFile() && !file.parentPath.includes('proto'))
        folders.set(file.parentPath, (folders.get(file.parentPath) ?? 0) + 1);
    }
    expect([...folders].filter(([, count]) => count > 16)).toEqual([]);
  });

  it('every folder has a place in that order', () => {
    expect([...new Set(files.map(folder))].filter((name) => !ORDER.includes(name))).toEqual([]);
  });

  it('only the command line ends the process or handles signals', () => {
    // The last ones are the main programs of separate processes and threads.
    const owners = /^(cli\/|ring\/(command|w8y)\.ts|pool\/(host-process|handlers\/handler-thread)\.ts)/;
    const guilty = files.filter(
      (file) =>
        !owners.test(file) && /process\.(exit\(|on\(|once\()/.test(readFileSync(join(root, 'src', file), 'utf8')),
    );
    expect(guilty).toEqual([]);
  });

  it('the ring imports nothing else of this project but the SQLite driver and connections to Redis and PostgreSQL', () => {
    const taken = files
      .filter((file) => file.startsWith('ring/'))
      .flatMap((file) =>
        [...readFileSync(join(root, 'src', file), 'utf8').matchAll(/from '(\.\.?\/[^']+)'/g)].map(([, target]) =>
          relative(join(root, 'src'), resolve(root, 'src', dirname(file), target!)),
        ),
      )
      .filter((file) => !/^(ring|process)\//.test(file));
    const postgres = ['connect.js', 'connection/arguments.js', 'connection/client.js', 'connection/options.js'];
    const allowed = [
      'store/sqlite/file/driver.js',
      'store/url.js',
      ...['open-socket.js', 'resp.js'].map((file) => `store/redis/connection/${file}`),
      ...postgres.map((file) => `store/postgres/${file}`),
    ];
    expect(new Set(taken)).toEqual(new Set(['errors.js', 'redact.js', 'url.js', ...allowed]));
  });
});

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const pages = ['README.md', 'CHANGELOG.md', ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`)].filter(
  (name) => name.endsWith('.md'),
);

/** The pages whose blocks go on where the last one ended: they share what is opened at the top of the page. */
const OPENED = `import { open } from 'crore';\nconst crore = await open('sqlite::memory:');\n`;

interface Block {
  /** Page and line. */
  at: string;
  code: string;
}

function blocksOf(page: string): Block[] {
  const text = readFileSync(join(root, page), 'utf8');
  return [...text.matchAll(/```(?:js|ts)[^\n]*\n([\s\S]*?)```/g)].map((match) => {
    const line = text.slice(0, match.index).split('\n').length;
    return { at: `${page}:${line}`, code: match[1]! };
  });
}

describe('every code block of the docs', () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'crore-blocks-'));
    mkdirSync(join(dir, 'node_modules', '@types'), { recursive: true });
    symlinkSync(root, join(dir, 'node_modules', 'crore'));
    symlinkSync(join(root, 'node_modules', '@types', 'node'), join(dir, 'node_modules', '@types', 'node'));
    for (const name of ['ioredis', 'postgres', 'undici-types', '@nestjs', 'rxjs', 'reflect-metadata'])
      symlinkSync(join(root, 'node_modules', name), join(dir, 'node_modules', name));
    writeFileSync(join(dir, 'package.json'), '{"type":"module"}');
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  it('compiles with tsc --strict as an application would', () => {
    const files = new Map<string, string>();
    for (const { at, code } of pages.flatMap(blocksOf)) {
      const named = /^\/\/ (\S+\.ts)\n/.exec(code)?.[1]; // such blocks import each other
      const file = join(dir, named ?? `${at.replaceAll(/[^\w]/g, '-')}.ts`);
      const isPiece = at.startsWith('docs/guide.md') && !code.includes("from 'crore'");
      writeFileSync(file, `${isPiece ? OPENED : ''}${code}\nexport {};\n`);
      files.set(file, at);
    }
    expect(files.size).toBeGreaterThan(10);
    const program = ts.createProgram([...files.keys()], {
      strict: true,
      noEmit: true,
      target: ts.ScriptTarget.ES2022,
      lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      types: ['node'],
      typeRoots: [join(dir, 'node_modules', '@types')],
      preserveSymlinks: true,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
    });
    const complaints = ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
      const line = file && start !== undefined ? file.getLineAndCharacterOfPosition(start).line : 0;
      return `${files.get(file?.fileName ?? '') ?? file?.fileName}+${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
    });
    expect(complaints).toEqual([]);
  });
});

describe('the package', () => {
  it('ships what its README links to, and nothing of the machine it was built on', () => {
    const { stdout } = spawnSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
      cwd: root,
      encoding: 'utf8',
    });
    const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
    const paths = files.map(({ path }) => path);
    const readme = readFileSync(join(root, 'README.md'), 'utf8');
    for (const [, target] of readme.matchAll(/\]\((?!https?:)([^)#]+)\)/g)) expect(paths).toContain(target);
    expect(paths.filter((path) => /\.map$|^dist\/cache|\.built$|\.db/.test(path))).toEqual([]);
    const maps = paths.filter((path) => path.endsWith('.js') && /sourceMappingURL=\S+\.map/.test(lastLine(path)));
    expect(maps).toEqual([]);
  });
});

function lastLine(path: string): string {
  return readFileSync(join(root, path), 'utf8').trimEnd().split('\n').at(-1)!;
}

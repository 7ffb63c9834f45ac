import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import postgres from 'postgres';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';

const OPTIONS = { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ES2022, verbatimModuleSyntax: true };
const root = fileURLToPath(new URL('../..', import.meta.url));

describe('documented examples work', () => {
  let dir: string;

  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'crore-examples-'));
    mkdirSync(join(dir, 'node_modules'));
    symlinkSync(root, join(dir, 'node_modules', 'crore'));
    symlinkSync(join(root, 'node_modules', 'postgres'), join(dir, 'node_modules', 'postgres'));
  });
  afterAll(() => rmSync(dir, { recursive: true }));

  const run = (args: string[], { cwd = dir, database = '' } = {}) => {
    const env = {
      ...process.env,
      CRORE_STORE: 'sqlite:queues.db',
      DATABASE_URL: database,
      NODE_TEST_CONTEXT: undefined,
    };
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      cwd,
      env,
      encoding: 'utf8',
      timeout: 50_000,
    });
    return { status, text: stdout + stderr };
  };
  const blocks = (page: string) =>
    [...readFileSync(join(root, 'docs', page), 'utf8').matchAll(/```(?:js|ts)\n([\s\S]*?)```/g)].map(
      ([, code]) => ts.transpileModule(code!, { compilerOptions: OPTIONS }).outputText,
    );

  it('examples/bookshop: its own tests pass', () => {
    const { status, text } = run(['--test', '--test-reporter=tap', 'examples/bookshop/bookshop.test.mjs'], {
      cwd: root,
    });
    expect(status, text).toBe(0);
    expect(text).toMatch(/^# pass 7$/m);
  });

  it('docs/testing.md: the tests on the page pass', () => {
    const [code] = blocks('testing.md');
    writeFileSync(join(dir, 'page.test.mjs'), code!);
    const { status, text } = run(['--test', '--test-reporter=tap', 'page.test.mjs']);
    expect(status, text).toBe(0);
    expect(text).toMatch(/^# pass 3$/m);
  });

  it('docs/transactions.md: each way works as shown', async () => {
    const sql = postgres(inject('postgresUrl'), { max: 1, onnotice: () => {} });
    await sql`drop database if exists shop`;
    await sql`create database shop`;
    const database = Object.assign(new URL(inject('postgresUrl')), { pathname: '/shop' }).href;
    const outputs = blocks('transactions.md').map((code, i) => {
      writeFileSync(join(dir, `way${i}.mjs`), code);
      // Newer versions of Node print a warning about their own SQLite.
      const { status, text } = run(['--no-warnings', `way${i}.mjs`], { database });
      expect(status, text).toBe(0);
      return text;
    });
    await sql`drop database shop`;
    await sql.end();
    expect(outputs).toHaveLength(3);
    expect(outputs[0]).toBe('sent to ada@example.org\n');
    expect(outputs[1]).toContain('ready: 1');
    expect(outputs[2]).toContain('ready: 2');
  });
});

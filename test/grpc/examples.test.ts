import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, it, type TestContext } from 'vitest';
import { goTools, pythonTools } from './support/generators.js';
import { startServer, type TestServer } from './support/server.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'crore-examples-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function serve(): Promise<TestServer> {
  const server = await startServer({ grace: 100 });
  cleanups.push(() => server.close());
  return server;
}

/** The first run downloads the code generators. */
const FIRST_TIME = 300_000;
const python = process.env.CRORE_PYTHON ?? 'python3';

/** Runs a program without blocking the server, which is in this process. */
function run(
  command: string,
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
): Promise<{ code: number | null; out: string }> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env } });
    cleanups.push(() => child.kill('SIGKILL'));
    let out = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        out += chunk;
      });
    }
    child.on('close', (code) => resolve({ code, out }));
  });
}

function skip(context: TestContext, why: string): void {
  console.warn(`${context.task.name}: skipped, ${why}`);
  context.skip(why);
}

const payloads = (count: number) =>
  Array.from({ length: count }, (_x, i) => ({ id: `j${i}`, payload: `{"to":"user${i}"}` }));

describe('the examples run', () => {
  it('TypeScript: adds and works through the library', async () => {
    const server = await serve();
    const file = join(root, 'examples/typescript/worker.mjs');
    const { code, out } = await run(process.execPath, [file, `grpc://${server.address}`, '25'], root);
    expect({ code, out }).toEqual({ code: 0, out: '25 mails sent, the last to user24\n' });
    expect((await server.store.count('mails')).done).toBe(25);
  });

  it(
    'Python: a worker generated from the proto files',
    async (context) => {
      const tools = await pythonTools(python);
      if ('missing' in tools) return skip(context, tools.missing);
      const { env } = tools;
      const server = await serve();
      const args = [
        '-m',
        'grpc_tools.protoc',
        '-I',
        join(root, 'proto'),
        `--python_out=${dir}`,
        `--grpc_python_out=${dir}`,
      ];
      const made = await run(python, [...args, 'crore/v1/job.proto', 'crore/v1/crore.proto'], dir, env);
      expect(made).toMatchObject({ code: 0 });
      cpSync(join(root, 'examples/python/worker.py'), join(dir, 'worker.py'));
      await fetch(`${server.http}/crore.v1.Crore/Add`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          queue: 'mails',
          jobs: payloads(20).map(({ id, payload }) => ({ id, payload: JSON.parse(payload) as unknown })),
        }),
      });
      const { code, out } = await run(python, ['worker.py', server.address, 'mails', '20'], dir, env);
      expect({ code, out }).toEqual({ code: 0, out: '20 jobs done\n' });
      expect((await server.store.get('mails', ['j3']))[0]).toMatchObject({
        state: 'done',
        result: '{"sent": "user3"}',
      });
    },
    FIRST_TIME,
  );

  it(
    'Go: a producer generated from the proto files',
    async (context) => {
      const tools = await goTools(join(root, 'examples/go'));
      if ('missing' in tools) return skip(context, tools.missing);
      const { env } = tools;
      const server = await serve();
      const place = join(dir, 'go');
      cpSync(join(root, 'examples/go'), place, { recursive: true });
      const template = readFileSync(join(place, 'buf.gen.yaml'), 'utf8').replaceAll('../../proto', join(root, 'proto'));
      writeFileSync(join(place, 'buf.gen.yaml'), template);
      expect(await run(join(root, 'node_modules/.bin/buf'), ['generate'], place, env)).toMatchObject({ code: 0 });
      expect(await run('go', ['build', '-o', 'producer', '.'], place, env)).toMatchObject({ code: 0 });
      const { code, out } = await run('./producer', [server.address, 'mails', '10'], place);
      expect({ code, out }).toEqual({ code: 0, out: '10 jobs created\n' });
      expect((await server.store.get('mails', ['go-7']))[0]).toMatchObject({
        state: 'ready',
        payload: '{"to":"user7"}',
      });
    },
    FIRST_TIME,
  );
});

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { freePort } from '../support/redis.js';
import { until } from '../support/wait.js';
import { Lakh, seconds } from './support/lakh.js';
import { ServeProcess } from './support/process.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const dir = mkdtempSync(join(tmpdir(), 'crore-serve-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const crore = (args: string[], env: NodeJS.ProcessEnv = {}) =>
  spawnSync(process.execPath, [join(root, 'bin/crore'), ...args], {
    cwd: dir,
    encoding: 'utf8',
    timeout: 30_000,
    env: { ...process.env, CRORE_STORE: undefined, ...env },
  });

async function serve(args: string[], env: NodeJS.ProcessEnv = {}): Promise<ServeProcess> {
  const server = await ServeProcess.start(args, { cwd: dir, env });
  cleanups.push(() => server.end());
  return server;
}

describe('crore serve', () => {
  it('prints its addresses, on both loopbacks, and on SIGTERM gives active jobs back and exits cleanly', async () => {
    const port = await freePort();
    const server = await serve(['--addr', `localhost:${port}`, '--http', 'localhost:0', '--grace', '1s']);
    expect(server.out).toContain(`127.0.0.1:${port}`);
    expect(server.out).toContain("open('grpc://");
    const lakh = new Lakh(`localhost:${port}`);
    cleanups.push(() => lakh.close());
    await lakh.work('q', [{ id: 'a', name: 'q', reservation_time: seconds(60) }]);
    if (server.out.includes('[::1]')) {
      const other = new Lakh(`[::1]:${port}`);
      cleanups.push(() => other.close());
      await other.work('q', [{ id: 'b', name: 'q' }]);
    }
    const worker = lakh.join('q');
    await worker.got(1);
    expect(await server.end('SIGTERM')).toBe(0);
    expect(await worker.ended()).toMatchObject({ code: 14 });
    expect(server.errors).toContain('shutting down');
  });

  it('logs only JSON lines, including warnings of the runtime', async () => {
    const preload = "data:text/javascript,setTimeout(()=>process.emitWarning('from the runtime'),1500)";
    const server = await serve(['--addr', 'localhost:0', '--http', 'off'], { NODE_OPTIONS: `--import "${preload}"` });
    await until('the warning', () => server.errors.includes('from the runtime'));
    expect(await server.end('SIGTERM')).toBe(0);
    const lines = server.errors.trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).msg)).toContain('from the runtime');
  });

  it('waits for the reports of active jobs during the grace period', async () => {
    const server = await serve([
      '--addr',
      'localhost:0',
      '--http',
      'localhost:0',
      '--store',
      'sqlite:drain.db',
      '--grace',
      '20s',
    ]);
    const lakh = new Lakh(server.address);
    cleanups.push(() => lakh.close());
    await lakh.work('q', [{ id: 'a', name: 'q', reservation_time: seconds(60) }]);
    const worker = lakh.join('q');
    await worker.got(1);
    server.child.kill('SIGTERM');
    await until('the server to drain', () => server.errors.includes('shutting down'));
    worker.report(worker.jobs[0]!, 'SUCCEEDED');
    await until('the server to end', () => !server.running);
    const after = await serve(['--addr', 'localhost:0', '--http', 'localhost:0', '--store', 'sqlite:drain.db']);
    const counted = await fetch(`${after.http}/crore.v1.Crore/Count`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"queue":"q"}',
    });
    expect(await counted.json()).toMatchObject({ counts: { done: 1 } });
  });

  it('supports buf curl by reflection, which serves the same proto files', async () => {
    const server = await serve(['--addr', 'localhost:0', '--http', 'off', '--store', 'sqlite::memory:']);
    const buf = (...args: string[]) =>
      spawnSync(join(root, 'node_modules/.bin/buf'), args, { cwd: dir, encoding: 'utf8', timeout: 30_000 });
    const curl = (...args: string[]) => buf('curl', '--http2-prior-knowledge', '--protocol', 'grpc', ...args);
    const listed = curl('--list-methods', `http://${server.address}`);
    expect(listed.stdout).toContain('lakh.Lakh/Join');
    expect(listed.stdout).toContain('crore.v1.Crore/Add');
    const added = curl('-d', '{"queue":"q","jobs":[{"id":"a"}]}', `http://${server.address}/crore.v1.Crore/Add`);
    expect(JSON.parse(added.stdout)).toEqual({ results: [{ outcome: 'ADD_OUTCOME_CREATED', id: 'a' }] });
    const dead = curl(`http://${server.address}/lakh.Lakh/GetDeadJobs`);
    expect({ status: dead.status, stderr: dead.stderr }).toEqual({ status: 0, stderr: '' });
  });

  it('has proto files that pass the linter and match the generated code', () => {
    const buf = join(root, 'node_modules/.bin/buf');
    const run = (...args: string[]) =>
      spawnSync(buf, args, { cwd: join(root, 'proto'), encoding: 'utf8', timeout: 60_000 });
    expect(run('lint')).toMatchObject({ status: 0, stdout: '' });
    const out = join(dir, 'generated');
    const template = JSON.stringify({
      version: 'v2',
      plugins: [
        { local: join(root, 'node_modules/.bin/protoc-gen-es'), out, opt: ['target=ts', 'import_extension=js'] },
      ],
    });
    expect(run('generate', '--template', template)).toMatchObject({ status: 0 });
    expect(spawnSync('diff', ['-r', out, join(root, 'src/proto')], { encoding: 'utf8' }).stdout).toBe('');
  });

  it.each([
    [['--addr', '0.0.0.0:0'], '--insecure'],
    [['--http', '0.0.0.0:0'], '--insecure'],
    [['--addr', '0.0.0.0:0', '--token', 'x'], 'tls-cert'],
    [['--addr', 'nonsense'], 'nonsense'],
    [['--tls-cert', 'nowhere.pem'], 'tls-key'],
    [['--tls-cert', 'nowhere.pem', '--tls-key', 'nowhere.key'], 'nowhere'],
    [['--max-retry', 'x'], '--max-retry'],
    [['--store', 'mysql://x'], 'mysql'],
    [['--frobnicate'], 'frobnicate'],
    [['--config', 'nowhere.toml'], 'nowhere.toml'],
  ])('refuses %j in one line', (args, word) => {
    const { status, stderr } = crore(['serve', ...args]);
    expect(stderr).toContain(word);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(status).toBe(2);
  });

  it('serves other machines with --insecure', async () => {
    const server = await serve(['--addr', '0.0.0.0:0', '--http', 'off', '--store', 'sqlite::memory:', '--insecure']);
    expect(server.out).toContain('Other machines can reach this server');
  });
});

describe('crore config', () => {
  it('prefers flags to environment to file to defaults, and shows the origin', () => {
    const file = join(dir, 'settings.toml');
    writeFileSync(file, 'addr = "127.0.0.1:7000"\nmax_retry = 5\nlease = "20s"\n');
    const { stdout, status } = crore(['config', '--json', '--config', file, '--max-retry', '9'], {
      CRORE_ADDR: 'localhost:8000',
      CRORE_TOKEN: 'secret-word',
      CRORE_STORE: 'redis://user:hush@host',
    });
    expect(status).toBe(0);
    const all = JSON.parse(stdout);
    expect(all.max_retry).toEqual({ value: '9', origin: 'flag' });
    expect(all.addr).toEqual({ value: 'localhost:8000', origin: 'CRORE_ADDR' });
    expect(all.lease).toEqual({ value: '20000', origin: file });
    expect(all.http).toEqual({ value: 'localhost:5380', origin: 'default' });
    expect(stdout).not.toContain('secret-word');
    expect(stdout).not.toContain('hush');
    expect(crore(['config', '--show-origin', '--config', file]).stdout).toMatch(/max_retry\s+= 5\s+# .*settings.toml/);
  });

  it.each([
    ['frob = 1', 'frob'],
    ['max_retry = "many"', 'max_retry'],
    ['addr = ', 'settings'],
  ])('refuses a file with %s', (text, word) => {
    const file = join(dir, 'settings-bad.toml');
    writeFileSync(file, `${text}\n`);
    const { status, stderr } = crore(['config', '--config', file]);
    expect({ status, named: stderr.includes(word) }).toEqual({ status: 2, named: true });
  });
});

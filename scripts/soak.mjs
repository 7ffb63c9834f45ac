// npm run soak -- [--store redis|sqlite|postgres] [--jobs N] [--minutes N] [--resume]: jobs through real processes with faults all the way.
// Default: ten million jobs on Redis, one million on SQLite and PostgreSQL, and no new round after four hours.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));
const JOBS = { redis: 10_000_000, sqlite: 1_000_000, postgres: 1_000_000 };

function fail(text) {
  process.stderr.write(`soak: ${text}\n`);
  process.exit(2);
}

function read() {
  const text = { type: 'string' };
  const options = {
    store: { ...text, default: 'redis' },
    jobs: text,
    minutes: { ...text, default: '240' },
    resume: { type: 'boolean', default: false },
  };
  try {
    return parseArgs({ options }).values;
  } catch (error) {
    return fail(error.message);
  }
}

const { store, jobs, minutes, resume } = read();
if (!Object.hasOwn(JOBS, store)) fail(`--store is redis, sqlite or postgres, not '${store}'`);
const count = Number(jobs ?? JOBS[store]);
if (!Number.isInteger(count / 1_000) || count < 1_000 || count > 4e9)
  fail(`--jobs is a multiple of 1000, not '${jobs}'`);
if (!(Number(minutes) > 0)) fail(`--minutes is a number above 0, not '${minutes}'`);

const dir = mkdtempSync(join(tmpdir(), 'crore-soak-'));
const report = join(dir, 'report.md');
const bin = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const asked = JSON.stringify({ store, jobs: count, minutes: Number(minutes), resume, report });
const args = [bin, 'run', 'test/faults/soak/soak.test.ts', '--disable-console-intercept', '--reporter=dot'];
const child = spawn(process.execPath, args, {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, CRORE_SOAK: asked },
});
child.on('exit', (code) => {
  process.stdout.write(
    existsSync(report) ? `\n${readFileSync(report, 'utf8')}` : '\nno report: the soak was not completed\n',
  );
  rmSync(dir, { recursive: true, force: true });
  process.exitCode = code ?? 1;
});

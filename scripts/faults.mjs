// npm run faults [ROW…]: the long form of the fault experiments, one line for each row and store.
// Without rows: all of them, about twenty minutes on two cores. --plant: plants bugs instead, see planted-bugs.mjs.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const args = process.argv.slice(2);
const bad = args.find((arg) => arg !== '--plant' && !/^([1-9]|[1-3][0-9]|4[0-4])$/.test(arg));
if (bad !== undefined) {
  process.stderr.write(`faults: '${bad}' is not a row from 1 to 44, and not --plant\n`);
  process.exit(2);
}
if (args.includes('--plant')) {
  await import('./planted-bugs.mjs');
} else {
  installPrograms();
  await runRows(args.map(Number));
}

/** What some rows need. Where it cannot be installed, these rows are skipped and say so. */
function installPrograms() {
  const missing = [];
  if (spawnSync('strace', ['-V']).error) missing.push('strace');
  if (!existsSync('/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1')) missing.push('libfaketime');
  if (missing.length === 0) return;
  const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
  const [command, ...rest] = [...sudo, 'apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...missing];
  spawnSync(command, rest, { stdio: 'ignore', env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } });
}

async function runRows(rows) {
  const dir = mkdtempSync(join(tmpdir(), 'crore-faults-'));
  const file = join(dir, 'report.jsonl');
  const printed = { ok: 0, FAILED: 0, skipped: 0 };
  const all = [];
  let shown = 0;
  const show = () => {
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
    for (const line of lines.slice(shown)) print(JSON.parse(line));
    shown = lines.length;
  };
  const print = (line) => {
    all.push(line);
    printed[line.verdict] += 1;
    const { row, name, store, figure, verdict } = line;
    process.stdout.write(`${String(row).padStart(2)}  ${verdict.padEnd(7)} ${store.padEnd(14)} ${name}: ${figure}\n`);
  };
  const timer = setInterval(show, 300);
  const env = { CRORE_FAULTS: 'long', CRORE_FAULT_ROWS: rows.join(','), CRORE_FAULT_REPORT: file };
  const { code, output } = await vitest(['test/faults/experiments.test.ts', '--passWithNoTests'], env);
  clearInterval(timer);
  show();
  for (const [kept] of output.matchAll(/row \d+ on .*: the histories are in \S+/g)) process.stdout.write(`${kept}\n`);
  // An experiment that could not be completed has printed no line.
  if (code !== 0 && printed.FAILED === 0) {
    printed.FAILED += 1;
    process.stdout.write(output);
  }
  const suite = JSON.parse(readFileSync(join(root, 'test', 'faults', 'suite.json'), 'utf8'));
  for (const { row, name, store, figure, file: test, title } of suite) {
    if (rows.length > 0 && !rows.includes(row)) continue;
    const json = join(dir, `${row}.json`);
    const filter = title ? ['-t', title] : [];
    const result = await vitest([test, ...filter, '--reporter=json', `--outputFile=${json}`], {});
    const { numPassedTests = 0, numFailedTests = 0 } = existsSync(json) ? JSON.parse(readFileSync(json, 'utf8')) : {};
    const verdict = result.code !== 0 || numFailedTests > 0 ? 'FAILED' : numPassedTests === 0 ? 'skipped' : 'ok';
    const tests = `${numPassedTests} tests of ${test}`;
    print({ row, name, store, verdict, figure: verdict === 'ok' ? `${figure} (${tests})` : `${tests} passed` });
    if (verdict === 'FAILED') process.stdout.write(result.output);
  }
  rmSync(dir, { recursive: true, force: true });
  const missing = Array.from({ length: 44 }, (_x, i) => i + 1).filter((row) => !all.some((line) => line.row === row));
  process.stdout.write(`\n${printed.ok} ok, ${printed.FAILED} failed, ${printed.skipped} skipped`);
  process.stdout.write(rows.length === 0 && missing.length > 0 ? `; no line for rows ${missing.join(', ')}\n` : '\n');
  process.exitCode = printed.FAILED > 0 ? 1 : 0;
}

function vitest(more, env) {
  const bin = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const child = spawn(process.execPath, [bin, 'run', ...more], { cwd: root, env: { ...process.env, ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  return new Promise((resolve) => child.on('exit', (code) => resolve({ code, output })));
}

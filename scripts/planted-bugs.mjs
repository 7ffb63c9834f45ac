// npm run faults -- --plant: plants one bug at a time into a copy of the built package, and shows what catches it: the model test, else the
// contracts of the stores, else the tests of what is left over and of SQLite files. Exits with 1 if a bug is not caught. CRORE_PLANT=TEXT plants only the bugs whose name contains TEXT.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const bugs = JSON.parse(readFileSync(join(root, 'test', 'faults', 'planted-bugs.json'), 'utf8'));
const only = process.env.CRORE_PLANT ?? '';
const scratch = mkdtempSync(join(tmpdir(), 'crore-plant-'));

for (const name of ['dist', 'test', 'package.json', 'tsconfig.json', 'vitest.config.ts']) {
  cpSync(join(root, name), join(scratch, name), { recursive: true, filter: (path) => !path.endsWith('/.cache') });
}
symlinkSync(join(root, 'node_modules'), join(scratch, 'node_modules'));

const NETS = [
  ['the model', 'test/model/model.test.ts'],
  ['the contract', 'test/store/stores.test.ts'],
  ['the contract of reports', 'test/store/reports.test.ts'],
  ['leftovers', 'test/faults/leftovers.test.ts'],
  ['the tests of SQLite files', 'test/faults/sqlite.test.ts'],
];

/** The title of the first test that fails; undefined if all pass. */
function firstFailure(file) {
  const report = join(scratch, 'report.json');
  rmSync(report, { force: true });
  const bin = join(root, 'node_modules', 'vitest', 'vitest.mjs');
  const args = [bin, 'run', file, '--bail=1', '--reporter=json', `--outputFile=${report}`];
  const env = { ...process.env, CRORE_MODEL_RUNS: '120', CRORE_MODEL_SEED: '7', CRORE_MODEL_SHRINK: 'off' };
  const { status } = spawnSync(process.execPath, args, { cwd: scratch, env, stdio: 'ignore', timeout: 240_000 });
  if (status === 0) return undefined;
  try {
    const suites = JSON.parse(readFileSync(report, 'utf8')).testResults;
    return (
      suites.flatMap((suite) => suite.assertionResults).find((test) => test.status === 'failed')?.title ??
      'it does not end'
    );
  } catch {
    return 'it does not end';
  }
}

function catcherOf() {
  for (const [net, file] of NETS) {
    const title = firstFailure(file);
    if (title !== undefined) return net === 'the model' ? net : `${net}: ${title}`;
  }
  return undefined;
}

let missed = 0;
try {
  for (const { name, file, find, put } of bugs.filter((bug) => bug.name.includes(only))) {
    const path = join(scratch, 'dist', file);
    const good = readFileSync(path, 'utf8');
    if (!good.includes(find)) throw new Error(`${name}: '${find}' is not in dist/${file} any more`);
    writeFileSync(
      path,
      good.replace(find, () => put),
    );
    const catcher = catcherOf();
    writeFileSync(path, good);
    if (catcher === undefined) missed += 1;
    process.stdout.write(`| ${name} | ${file.includes('redis') ? 'Redis' : 'SQLite'} | ${catcher ?? 'NOT CAUGHT'} |\n`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.exitCode = missed > 0 ? 1 : 0;

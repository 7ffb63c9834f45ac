// npm run fuzz -- --minutes N: random input for everything that reads input, for this long. What fails is kept in test/fuzz/corpus, and
// tried first from then on.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const [flag, minutes] = process.argv.slice(2);
if (flag !== '--minutes' || !(Number(minutes) > 0 && Number(minutes) <= 1_440)) {
  process.stderr.write('usage: npm run fuzz -- --minutes N\n');
  process.exit(2);
}
const env = { ...process.env, CRORE_FUZZ_MINUTES: minutes };
const args = ['node_modules/vitest/vitest.mjs', 'run', 'test/fuzz', '--disable-console-intercept'];
process.exitCode = spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).status ?? 1;

// npm run load -- [--connections 1000] [--streams 10000] [--minutes 10]: a job server under many connections and streams, slow readers
// among them; a line for each minute, and whether the last third is like the first.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = fileURLToPath(new URL('..', import.meta.url));

function fail(text) {
  process.stderr.write(`load: ${text}\n`);
  process.exit(2);
}

function read() {
  const number = (value) => ({ type: 'string', default: value });
  try {
    return parseArgs({ options: { connections: number('1000'), streams: number('10000'), minutes: number('10') } })
      .values;
  } catch (error) {
    return fail(error.message);
  }
}

const asked = Object.fromEntries(Object.entries(read()).map(([name, value]) => [name, Number(value)]));
for (const [name, value] of Object.entries(asked)) {
  if (!Number.isInteger(value) || value < 1) fail(`--${name} is a whole number above 0`);
}
if (asked.connections % 2 || asked.streams % asked.connections)
  fail('--connections is even, and --streams a multiple of it');

// Each connection is a descriptor here and in the server: the soft limit of the children becomes the hard one.
const bin = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const args = [bin, 'run', 'test/grpc/load/load.test.ts', '--disable-console-intercept', '--reporter=dot'];
const raised = ['-c', 'ulimit -n "$(ulimit -Hn)"; exec "$@"', 'sh', process.execPath, ...args];
const env = { ...process.env, CRORE_LOAD: JSON.stringify(asked) };
spawn('sh', raised, { cwd: root, stdio: 'inherit', env }).on('exit', (code) => {
  process.exitCode = code ?? 1;
});

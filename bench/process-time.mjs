// One program, timed: by the clock, and the CPU time of it and of all it waited for.
import { spawnSync } from 'node:child_process';

/** A Node that has certificates to read first starts twice as slowly: that is not ours to measure. */
const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;

const SCRIPT = 'TIMEFORMAT="%3U %3S"; { time "$@" 2>&3 >/dev/null; } 3>&2 2>&1';

/** CPU time comes from the shell around it, which costs some milliseconds of the clock; not every sh counts single ones. */
export function timed(command, args, cwd) {
  const begin = performance.now();
  const { status, error, stdout, stderr } = spawnSync('bash', ['-c', SCRIPT, 'bash', command, ...args], {
    cwd,
    env,
    encoding: 'utf8',
  });
  const ms = performance.now() - begin;
  if (error || status === 127) return undefined;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}: exit ${status}: ${stderr.slice(-300)}`);
  const [user, system] = stdout.split(' ').map(Number);
  return { ms, cpu: (user + system) * 1_000 };
}

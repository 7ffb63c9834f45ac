// Times one program: wall-clock time, and the CPU time of it and of all processes it waited for.
import { spawnSync } from 'node:child_process';

/** Node starts twice as slowly when it has extra certificates to read, which is not what we measure. */
const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env;

const SCRIPT = 'TIMEFORMAT="%3U %3S"; { time "$@" 2>&3 >/dev/null; } 3>&2 2>&1';

/**
 * The CPU time comes from the surrounding shell, which adds some milliseconds of wall-clock time; not every sh has a
 * resolution of one millisecond.
 */
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

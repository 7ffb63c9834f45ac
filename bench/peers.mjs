// Installs the peers beside the benchmark when they are missing. Only better-sqlite3 may run its install script: it
// has a native half to compile.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const stamp = `${here}node_modules/.crore-peers`;
const INSTALL_MS = 5 * 60_000;
const COMPILE_MS = 15 * 60_000;

/** Says in one line what could not be installed; the subjects concerned are then found missing. */
export function installPeers(say) {
  const lock = readFileSync(`${here}package-lock.json`, 'utf8');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  say('installing the peers');
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  const installed = npm(['install', '--no-save', '--ignore-scripts', ...quiet], INSTALL_MS);
  if (installed) return say(`the peers could not be installed: ${installed}`);
  say('compiling better-sqlite3, a minute or two');
  const compiled = npm(['rebuild', 'better-sqlite3', '--ignore-scripts=false', ...quiet], COMPILE_MS);
  if (compiled) return say(`better-sqlite3 could not be compiled: ${compiled}`);
  writeFileSync(stamp, lock);
}

function npm(args, timeout) {
  const done = spawnSync('npm', args, { cwd: here, timeout, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] });
  if (done.status === 0) return undefined;
  return done.error?.message ?? lastLine(done.stderr);
}

function lastLine(text) {
  return text.trim().split('\n').at(-1) || 'npm gave no reason';
}

// Installs missing peers next to the benchmark. Only better-sqlite3 may run its install script, because it has a native
// part to compile.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const stamp = `${here}node_modules/.crore-peers`;
const QUIET = ['--no-audit', '--no-fund', '--loglevel=error'];
const INSTALL_MS = 5 * 60_000;
const COMPILE_MS = 15 * 60_000;

/** Reports in one line what could not be installed; a later run tries again, this one continues without it. */
export function installPeers(say) {
  const lock = readFileSync(`${here}package-lock.json`, 'utf8');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  say('installing the peers');
  const missing = install();
  const uncompiled = isInstalled('better-sqlite3') ? compile(say) : undefined;
  const obstacle = missing ?? uncompiled;
  if (obstacle) say(`not all peers could be installed: ${obstacle}`);
  else writeFileSync(stamp, lock);
}

/**
 * The peers are optional dependencies: npm may skip one and still report success. It skips those that ask for a newer Node, too, so the one that
 * does but runs on ours is not optional.
 */
function install() {
  const obstacle = npm(['install', '--no-save', '--ignore-scripts', ...QUIET], INSTALL_MS);
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(`${here}package.json`, 'utf8'));
  const missing = Object.keys({ ...dependencies, ...optionalDependencies }).filter((name) => !isInstalled(name));
  return obstacle ?? (missing.length > 0 ? `npm left out ${missing.join(', ')}` : undefined);
}

function compile(say) {
  say('compiling better-sqlite3, a minute or two');
  return npm(['rebuild', 'better-sqlite3', '--ignore-scripts=false', ...QUIET], COMPILE_MS);
}

function isInstalled(name) {
  return existsSync(`${here}node_modules/${name}/package.json`);
}

function npm(args, timeout) {
  const done = spawnSync('npm', args, { cwd: here, timeout, encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] });
  if (done.status === 0) return undefined;
  return done.error?.message ?? lastLine(done.stderr);
}

function lastLine(text) {
  return text.trim().split('\n').at(-1) || 'npm gave no reason';
}

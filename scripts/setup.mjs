// Prepares a checkout: installs npm packages when they are missing or the lockfile changed, builds when a source is
// newer, and with --test installs what the tests run (a redis-server, PostgreSQL, a browser …) from Debian's packages where it is missing. It repeats nothing.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const flags = new Set(process.argv.slice(2));

function say(text) {
  process.stderr.write(`crore setup: ${text}\n`);
}

function run(command, args, options = {}) {
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], ...options });
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  say(`Node ${process.versions.node} is too old, Crore needs 20.19 or newer`);
  process.exit(2);
}

function installPackages() {
  const stamp = join(root, 'node_modules', '.crore-lock');
  const lock = readFileSync(join(root, 'package-lock.json'), 'utf8');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return;
  say('installing npm packages');
  run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']);
  writeFileSync(stamp, lock);
}

function newest(dir) {
  let latest = 0;
  for (const entry of readdirSync(dir, { recursive: true })) {
    latest = Math.max(latest, statSync(join(dir, entry)).mtimeMs);
  }
  return latest;
}

function build() {
  const stamp = join(root, 'dist', '.built');
  const fresh = existsSync(stamp) && statSync(stamp).mtimeMs > newest(join(root, 'src'));
  if (fresh && !flags.has('--build')) return;
  say('building');
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc')]);
  for (const scripts of [
    join('store', 'redis', 'lua'),
    join('store', 'postgres', 'sql'),
    join('outbox', 'postgres', 'sql'),
  ]) {
    mkdirSync(join(root, 'dist', scripts), { recursive: true });
    cpSync(join(root, 'src', scripts), join(root, 'dist', scripts), { recursive: true });
  }
  run(process.execPath, [join(root, 'scripts', 'dashboard.mjs')]);
  run(process.execPath, [join(root, 'scripts', 'bundle.mjs')]);
  writeFileSync(stamp, '');
}

/** Programs the tests run, and the Debian packages that contain them. */
const PROGRAMS = { 'redis-server': 'redis-server', openssl: 'openssl', promtool: 'prometheus', chromium: 'chromium' };
/** The server of PostgreSQL is in no PATH, and PgBouncer not in that of every user. */
const POSTGRES = '/usr/lib/postgresql';
const PGBOUNCER = '/usr/sbin/pgbouncer';
/** Read by the package: it must not create a cluster of its own. */
const NO_CLUSTER = '/etc/postgresql-common/createcluster.conf';

function installPrograms() {
  const missing = Object.keys(PROGRAMS).filter((name) => spawnSync(name, ['--version']).error);
  const packages = missing.map((name) => PROGRAMS[name]);
  if (!existsSync(POSTGRES)) packages.push('postgresql');
  if (!existsSync(PGBOUNCER)) packages.push('pgbouncer');
  if (packages.length === 0) return;
  say(`installing ${packages.join(' and ')} from the distribution for the tests`);
  const sudo = process.getuid?.() === 0 ? [] : ['sudo', '-n'];
  const apt = (...args) => {
    const [command, ...rest] = [...sudo, 'apt-get', ...args];
    // RUNLEVEL=1 keeps the package from starting its own server.
    run(command, rest, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' } });
  };
  try {
    apt('update', '-qq');
    if (packages.includes('postgresql')) withoutCluster(sudo);
    apt('install', '-y', '-qq', '--no-install-recommends', ...packages);
  } catch (error) {
    say(`could not install ${packages.join(' and ')} (${error.message}); install by hand and run this again`);
    process.exit(2);
  }
}

function withoutCluster(sudo) {
  if (existsSync(NO_CLUSTER)) return;
  const script = `mkdir -p /etc/postgresql-common && echo 'create_main_cluster = false' > ${NO_CLUSTER}`;
  const [command, ...args] = [...sudo, 'sh', '-c', script];
  run(command, args);
}

checkNode();
installPackages();
build();
if (flags.has('--test')) installPrograms();

// A PostgreSQL server only for the benchmark: Debian's package, loopback, a free port, a temporary directory, durable commits.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { connectPostgres } from '../subjects/root.mjs';
import { sleep, within } from '../wait.mjs';

const HOST = '127.0.0.1';
const USER = 'bench';
const INSTALLED = '/usr/lib/postgresql';
const START_MS = 20_000;
const STOP_MS = 10_000;
const TICKS_PER_SECOND = 100;

/** The same for every subject: as installed, except for sizes that suit any machine of today. */
const SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  shared_buffers: '256MB',
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  max_connections: '60',
};

/** The server's address, its pid, a function that stops it and one that kills it immediately. */
export async function startPostgres(parent, settings = {}) {
  const bin = newestBinaries();
  const user = account();
  chmodSync(parent, 0o755);
  const dir = mkdtempSync(join(parent, 'postgres-'));
  if (user.uid !== undefined) chownSync(dir, user.uid, user.gid);
  const data = join(dir, 'data');
  const init = ['-D', data, '-U', USER, '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  execFileSync(join(bin, 'initdb'), init, { ...user, cwd: dir, stdio: 'ignore' });
  const port = await freePort();
  const given = Object.entries({ ...SETTINGS, unix_socket_directories: dir, ...settings });
  const args = [
    '-D',
    data,
    '-p',
    String(port),
    '-h',
    HOST,
    ...given.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
  ];
  const child = spawn(join(bin, 'postgres'), args, { ...user, cwd: dir, stdio: 'ignore' });
  const gone = once(child, 'exit');
  const address = { host: HOST, port, user: USER, pid: child.pid };
  const failed = gone.then(() => {
    throw new Error('postgres ended before it answered');
  });
  await within(START_MS, 'starting postgres', Promise.race([answers(address), failed]));
  failed.catch(() => {});
  return { address, stop: () => stop(child, gone), kill: () => child.kill('SIGQUIT') };
}

function newestBinaries() {
  const found = existsSync(INSTALLED) ? readdirSync(INSTALLED) : [];
  const usable = found.filter((version) => existsSync(join(INSTALLED, version, 'bin', 'initdb')));
  const newest = usable.sort((a, b) => Number(a) - Number(b)).at(-1);
  if (!newest) throw new Error(`there is no server in ${INSTALLED}`);
  return join(INSTALLED, newest, 'bin');
}

/** The server refuses to run as root: then it runs as the user that its package has created. */
function account() {
  if (process.getuid?.() !== 0) return {};
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

async function answers(address) {
  for (;;) {
    const sql = connectPostgres({ ...address, database: 'postgres' });
    const up = await sql`select 1`.then(
      () => true,
      () => false,
    );
    await sql.end({ timeout: 0 });
    if (up) return;
    await sleep(50);
  }
}

/** A fast shutdown: sessions are ended, and everything is written. */
async function stop(child, gone) {
  child.kill('SIGINT');
  try {
    await within(STOP_MS, 'stopping postgres', gone);
  } catch {
    child.kill('SIGQUIT');
    await gone;
  }
}

async function freePort() {
  const probe = createServer().listen(0, HOST);
  await once(probe, 'listening');
  const { port } = probe.address();
  probe.close();
  await once(probe, 'close');
  return port;
}

/** The CPU time of the server with all its processes, also those that have ended, in microseconds (Linux only). */
export function serverMicroseconds(pid) {
  const own = statOf(pid);
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  const living = children.map((child) => statOf(child).slice(0, 2));
  const ticks = [...own, ...living.flat()].reduce((sum, value) => sum + value, 0);
  return (ticks * 1e6) / TICKS_PER_SECOND;
}

/** User and system time, and those of children that were waited for; zeros if the process is gone. */
function statOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields.slice(11, 15).map(Number);
  } catch {
    return [0, 0, 0, 0];
  }
}

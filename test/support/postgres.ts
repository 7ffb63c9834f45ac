import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres, { type Sql } from 'postgres';
import { freePort } from './redis.js';
import { until } from './wait.js';

const INSTALLED = '/usr/lib/postgresql';

/** The folder of the newest installed server; undefined if there is none. */
export function postgresBinaries(): string | undefined {
  if (!existsSync(INSTALLED)) return undefined;
  const versions = readdirSync(INSTALLED).filter((name) => existsSync(join(INSTALLED, name, 'bin', 'initdb')));
  const newest = versions.sort((a, b) => Number(a) - Number(b)).at(-1);
  return newest && join(INSTALLED, newest, 'bin');
}

/** The server refuses to run as root: then it runs as the user `postgres`, which its package creates. */
export function account(): { uid?: number; gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

function binaries(): string {
  const bin = postgresBinaries();
  if (!bin) throw new Error('PostgreSQL is not installed: run node scripts/setup.mjs --test');
  return bin;
}

function makeDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'crore-postgres-'));
  const user = account();
  if (user.uid !== undefined) chownSync(dir, user.uid, user.gid!);
  return dir;
}

function asArguments(settings: Record<string, string>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}

/** It may have ended by itself. */
function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // gone already
  }
}

/** A real PostgreSQL server for tests on a free loopback port, stopped by its pid, with an independent client. */
export class PostgresServer {
  private process: ChildProcess | undefined;
  readonly client: Sql;

  private constructor(
    readonly port: number,
    readonly dir: string,
    private readonly data: string,
    private readonly bin: string,
    private readonly settings: string[],
  ) {
    this.client = postgres({
      host: '127.0.0.1',
      port,
      user: 'crore',
      database: 'postgres',
      max: 1,
      onnotice: () => {},
    });
  }

  /** `data` and `wal`: parent folders of the database and of its write-ahead log, elsewhere than in the folder of this server. */
  static async start(settings: Record<string, string> = {}, places: { data?: string; wal?: string } = {}) {
    const bin = binaries();
    const dir = makeDir();
    const data = join(places.data ?? dir, 'data');
    const wal = places.wal === undefined ? [] : ['--wal-segsize=1', `--waldir=${join(places.wal, 'wal')}`];
    const args = ['-D', data, '-U', 'crore', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', ...wal];
    execFileSync(join(bin, 'initdb'), args, { ...account(), cwd: dir, stdio: 'ignore' });
    const server = new PostgresServer(await freePort(), dir, data, bin, asArguments(settings));
    await server.up();
    return server;
  }

  /** A standby that streams from another server. */
  static async replicaOf(primary: PostgresServer, settings: Record<string, string> = {}) {
    const bin = binaries();
    const dir = makeDir();
    const data = join(dir, 'data');
    const from = ['-h', '127.0.0.1', '-p', String(primary.port), '-U', 'crore'];
    const args = [...from, '-D', data, '-R', '-X', 'stream', '-c', 'fast', '--no-sync'];
    execFileSync(join(bin, 'pg_basebackup'), args, { ...account(), cwd: dir, stdio: 'ignore' });
    const server = new PostgresServer(await freePort(), dir, data, bin, asArguments(settings));
    await server.up();
    return server;
  }

  get url(): string {
    return `postgres://crore@127.0.0.1:${this.port}/postgres`;
  }

  get pid(): number {
    return this.process?.pid ?? 0;
  }

  /** Replaces the rules of who may log in, and how. */
  async allow(rules: string): Promise<void> {
    writeFileSync(join(this.data, 'pg_hba.conf'), `${rules}\n`);
    await this.client`select pg_reload_conf()`;
  }

  async up(): Promise<void> {
    const fast = ['fsync=off', 'full_page_writes=off', 'shared_buffers=32MB', `unix_socket_directories=${this.dir}`];
    const args = ['-D', this.data, '-p', String(this.port), '-h', '127.0.0.1', ...fast.flatMap((one) => ['-c', one])];
    this.process = spawn(join(this.bin, 'postgres'), [...args, ...this.settings], {
      ...account(),
      cwd: this.dir,
      stdio: 'ignore',
    });
    await until('the server answers', () =>
      this.client`select 1`.then(
        () => true,
        () => false,
      ),
    );
  }

  /** SIGQUIT: immediately, as after a crash. */
  async down(): Promise<void> {
    const process = this.process;
    if (!process || process.exitCode !== null || process.signalCode !== null) return;
    const gone = once(process, 'exit');
    process.kill('SIGQUIT');
    await gone;
  }

  /** SIGKILL for the server and all its processes. */
  async kill(): Promise<void> {
    const process = this.process;
    if (!process || process.exitCode !== null || process.signalCode !== null) return;
    const gone = once(process, 'exit');
    const children = childrenOf(this.pid);
    process.kill('SIGKILL');
    for (const pid of children) endProcess(pid);
    await gone;
    await until('its processes are gone', () => children.every((pid) => !existsSync(`/proc/${pid}`)));
  }

  async stop(): Promise<void> {
    await this.client.end({ timeout: 0 });
    await this.down();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** A role that may log in, and nothing else; it may be there already. */
export async function createRole(url: string, name: string): Promise<void> {
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  await sql.unsafe(`create role "${name}" login`).catch((error) => {
    if (error.code !== '42710') throw error;
  });
  await sql.end({ timeout: 1 });
}

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
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

/** A real PostgreSQL server for tests on a free loopback port, stopped by its pid, with an independent client. */
export class PostgresServer {
  private process: ChildProcess | undefined;
  readonly client: Sql;

  private constructor(
    readonly port: number,
    readonly dir: string,
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

  static async start(settings: Record<string, string> = {}): Promise<PostgresServer> {
    const bin = postgresBinaries();
    if (!bin) throw new Error('PostgreSQL is not installed: run node scripts/setup.mjs --test');
    const dir = mkdtempSync(join(tmpdir(), 'crore-postgres-'));
    const user = account();
    if (user.uid !== undefined) chownSync(dir, user.uid, user.gid!);
    const args = ['-D', join(dir, 'data'), '-U', 'crore', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
    execFileSync(join(bin, 'initdb'), args, { ...user, cwd: dir, stdio: 'ignore' });
    const port = await freePort();
    const given = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const server = new PostgresServer(port, dir, bin, given);
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
    writeFileSync(join(this.dir, 'data', 'pg_hba.conf'), `${rules}\n`);
    await this.client`select pg_reload_conf()`;
  }

  async up(): Promise<void> {
    const data = join(this.dir, 'data');
    const fast = ['fsync=off', 'full_page_writes=off', 'shared_buffers=32MB', `unix_socket_directories=${this.dir}`];
    const args = ['-D', data, '-p', String(this.port), '-h', '127.0.0.1', ...fast.flatMap((one) => ['-c', one])];
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

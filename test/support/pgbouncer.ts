import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { account } from './postgres.js';
import { freePort } from './redis.js';
import { until } from './wait.js';

/** A real PgBouncer in transaction mode before a server on this machine, stopped by its pid. */
export class Pooler {
  private constructor(
    readonly port: number,
    private readonly dir: string,
    private readonly process: ChildProcess,
  ) {}

  static async start(serverPort: number, users: readonly string[], mode = 'transaction'): Promise<Pooler> {
    const dir = mkdtempSync(join(tmpdir(), 'crore-pooler-'));
    const port = await freePort();
    const [config, list] = [join(dir, 'pgbouncer.ini'), join(dir, 'users')];
    writeFileSync(list, users.map((user) => `"${user}" ""\n`).join(''));
    const settings = [
      ['listen_addr', '127.0.0.1'],
      ['listen_port', port],
      ['unix_socket_dir', ''],
      ['auth_type', 'trust'],
      ['auth_file', list],
      ['pool_mode', mode],
      // Fewer connections than clients have, so that consecutive transactions of a client get different ones.
      ['default_pool_size', 3],
    ];
    const lines = settings.map(([name, value]) => `${name} = ${value}`);
    const databases = `* = host=127.0.0.1 port=${serverPort}`;
    writeFileSync(config, ['[databases]', databases, '[pgbouncer]', ...lines, ''].join('\n'));
    const { uid, gid } = account();
    for (const file of [dir, config, list]) chmodSync(file, 0o755);
    const child = spawn('/usr/sbin/pgbouncer', ['-q', config], { uid, gid, cwd: dir, stdio: 'ignore' });
    const pooler = new Pooler(port, dir, child);
    await until('the pooler listens', () => isOpen(port));
    return pooler;
  }

  async stop(): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const gone = once(this.process, 'exit');
      this.process.kill('SIGTERM');
      await gone;
    }
    rmSync(this.dir, { recursive: true, force: true });
  }
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (open: boolean) => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', () => end(true)).once('error', () => end(false));
  });
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { until } from './until.js';

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

/** A real redis-server of the test's own, with a client that shares no code with ours. */
export class RedisServer {
  private process: ChildProcess | undefined;
  readonly client: Redis;

  private constructor(
    readonly port: number,
    readonly dir: string,
    private readonly args: string[],
    options: RedisOptions,
  ) {
    this.client = new Redis({ port, host: '127.0.0.1', retryStrategy: () => 50, ...options });
    this.client.on('error', () => {});
  }

  static async start(args: string[] = [], options: RedisOptions = {}): Promise<RedisServer> {
    const dir = mkdtempSync(join(tmpdir(), 'ring-redis-'));
    const port = args.includes('--port') ? Number(args[args.indexOf('--port') + 1]) : await freePort();
    const server = new RedisServer(port, dir, args, options);
    await server.up();
    return server;
  }

  get url(): string {
    return `redis://localhost:${this.port}`;
  }

  get pid(): number {
    return this.process?.pid ?? 0;
  }

  async up(): Promise<void> {
    const base = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--dir', this.dir];
    this.process = spawn('redis-server', [...base, ...this.args], { stdio: 'ignore' });
    await until('redis-server answers', async () => (await this.client.ping().catch(() => '')) === 'PONG');
  }

  /** SIGKILL: nothing is saved, the next start is empty. */
  async down(): Promise<void> {
    const process = this.process;
    if (!process || process.exitCode !== null || process.signalCode !== null) return;
    const gone = once(process, 'exit');
    process.kill('SIGKILL');
    await gone;
  }

  async stop(): Promise<void> {
    this.client.disconnect();
    await this.down();
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** How often each command came from outside since the last reset. */
  async calls(command: string): Promise<number> {
    const info = await this.client.info('commandstats');
    return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(info)?.[1] ?? 0);
  }
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis, type RedisOptions } from 'ioredis';
import { until } from './wait.js';

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** A real redis-server for one test on a free loopback port, stopped by its pid, with an independent client. */
export class RedisServer {
  private process: ChildProcess | undefined;
  readonly client: Redis;

  private constructor(
    readonly port: number,
    readonly dir: string,
    private readonly args: string[],
    options: RedisOptions,
  ) {
    this.client = new Redis({
      port,
      host: '127.0.0.1',
      retryStrategy: () => 50,
      maxRetriesPerRequest: null,
      ...options,
    });
    this.client.on('error', () => {});
  }

  static async start(args: string[] = [], options: RedisOptions = {}): Promise<RedisServer> {
    const dir = mkdtempSync(join(tmpdir(), 'crore-redis-'));
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

  /** SIGKILL: without persistence, the next start is empty. */
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

  /** How often each command was called by clients since the last reset. */
  async calls(command: string): Promise<number> {
    const info = await this.client.info('commandstats');
    return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(info)?.[1] ?? 0);
  }
}

/** Three masters that share the slots. */
export async function startCluster(): Promise<{ url: string; nodes: RedisServer[]; stop(): Promise<void> }> {
  const nodes: RedisServer[] = [];
  for (let i = 0; i < 3; i++) {
    nodes.push(await RedisServer.start(['--cluster-enabled', 'yes', '--cluster-node-timeout', '5000']));
  }
  const ranges = [
    [0, 5460],
    [5461, 10922],
    [10923, 16383],
  ] as const;
  for (const [i, [from, to]] of ranges.entries()) await addSlots(nodes[i]!, from, to);
  for (const node of nodes.slice(1)) await nodes[0]!.client.call('CLUSTER', 'MEET', '127.0.0.1', node.port);
  for (const { client } of nodes) {
    await until('the cluster is up', async () =>
      String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok'),
    );
  }
  return {
    url: `redis+cluster://${nodes.map((node) => `127.0.0.1:${node.port}`).join(',')}`,
    nodes,
    stop: async () => {
      for (const node of nodes) await node.stop();
    },
  };
}

/** One by one, as required by servers before 7.0. */
export async function addSlots({ client }: RedisServer, from: number, to: number): Promise<void> {
  await client.call('CLUSTER', 'ADDSLOTS', ...Array.from({ length: to - from + 1 }, (_x, i) => String(from + i)));
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

/** Real Redis servers on free loopback ports, in a folder of their own, ended by their pid. */

export interface RedisServer {
  port: number;
  url: string;
  pid: number;
  /** Ends it politely and forgets its files. */
  stop(): Promise<void>;
  /** kill -9; its files stay. */
  kill(): Promise<void>;
  /** Starts it again on the same port and files. */
  start(): Promise<void>;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

export async function startRedis(args: string[] = [], givenPort?: number): Promise<RedisServer> {
  const port = givenPort ?? (await freePort());
  const dir = mkdtempSync(join(tmpdir(), 'crore-redis-'));
  let child: ChildProcess;
  const launch = async () => {
    const common = ['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', '', '--loglevel', 'warning'];
    child = spawn('redis-server', [...common, ...args], { stdio: 'ignore' });
    await answering(port);
  };
  await launch();
  const end = async (signal: 'SIGTERM' | 'SIGKILL') => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    await gone;
  };
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    get pid() {
      return child.pid!;
    },
    stop: async () => {
      await end('SIGKILL');
      rmSync(dir, { recursive: true, force: true });
    },
    kill: () => end('SIGKILL'),
    start: launch,
  };
}

async function answering(port: number): Promise<void> {
  const redis = new Redis(port, '127.0.0.1', { retryStrategy: () => 20, maxRetriesPerRequest: null, protocol: 2 });
  redis.on('error', () => {});
  try {
    await redis.ping();
  } finally {
    redis.disconnect();
  }
}

/** Three masters that share the slots. */
export async function startCluster(): Promise<{ url: string; nodes: RedisServer[]; stop(): Promise<void> }> {
  const nodes: RedisServer[] = [];
  for (let i = 0; i < 3; i++)
    nodes.push(await startRedis(['--cluster-enabled', 'yes', '--cluster-node-timeout', '5000']));
  const clients = nodes.map((node) => new Redis(node.url, { protocol: 2 }));
  const ranges = [
    [0, 5460],
    [5461, 10922],
    [10923, 16383],
  ] as const;
  for (const [i, [from, to]] of ranges.entries()) await clients[i]!.call('CLUSTER', 'ADDSLOTSRANGE', from, to);
  for (const node of nodes.slice(1)) await clients[0]!.call('CLUSTER', 'MEET', '127.0.0.1', node.port);
  for (const client of clients) {
    while (!String(await client.call('CLUSTER', 'INFO')).includes('cluster_state:ok'))
      await new Promise((r) => setTimeout(r, 50));
    client.disconnect();
  }
  const hosts = nodes.map((node) => `127.0.0.1:${node.port}`).join(',');
  return {
    url: `redis+cluster://${hosts}`,
    nodes,
    stop: async () => {
      for (const node of nodes) await node.stop();
    },
  };
}

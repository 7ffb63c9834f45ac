import { statSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase } from '../../../dist/store/sqlite/file/driver.js';
import { Line } from '../../support/proxy.js';
import { type Lab, pause } from '../support/lab.js';

/** A store under soak, with what can be done to it; each returns when the fault is over. */
export interface Target {
  url: string;
  /** The same store for those whose connections are cut. */
  proxied: string;
  faults: Record<string, { every: number; run: () => Promise<void> }>;
  /** Once or twice in a whole soak. */
  restart?: () => Promise<void>;
  /** Memory of the server or size of the file, in MB. */
  size(): Promise<number>;
  pid?: () => number;
}

const MB = 1_048_576;

export async function redisTarget(lab: Lab): Promise<Target> {
  // With `everysec` Redis puts off its write while a sync is slow, and a kill would lose what it has answered.
  const redis = await lab.redis(['--appendonly', 'yes', '--appendfsync', 'always']);
  const line = await Line.to(redis.port);
  lab.onClose(() => line.close());
  return {
    url: redis.url,
    proxied: `redis://127.0.0.1:${line.port}`,
    faults: {
      'CLIENT KILL': {
        every: 5_000,
        run: async () => void (await redis.client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')),
      },
      'SCRIPT FLUSH': { every: 4_000, run: async () => void (await redis.client.script('FLUSH')) },
      'connection reset': { every: 7_000, run: async () => line.reset() },
      'replies lost': {
        every: 17_000,
        run: async () => {
          line.swallowReplies();
          await pause(200);
          line.mend();
        },
      },
    },
    restart: async () => {
      await redis.down();
      await redis.up();
    },
    size: async () => Number(/used_memory:(\d+)/.exec(await redis.client.info('memory'))?.[1] ?? 0) / MB,
    pid: () => redis.pid,
  };
}

export async function postgresTarget(lab: Lab): Promise<Target> {
  const server = await lab.postgres();
  const line = await Line.to(server.port);
  lab.onClose(() => line.close());
  const { client } = server;
  let restarting = false;
  return {
    url: server.url,
    proxied: server.url.replace(String(server.port), String(line.port)),
    faults: {
      pg_terminate_backend: {
        every: 5_000,
        run: async () => {
          if (restarting) return;
          await client`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'crore' and random() < 0.5`.catch(
            (error) => {
              if (!restarting) throw error;
            },
          );
        },
      },
      'connection reset': { every: 7_000, run: async () => line.reset() },
      'replies lost': {
        every: 17_000,
        run: async () => {
          line.swallowReplies();
          await pause(200);
          line.mend();
        },
      },
    },
    restart: async () => {
      restarting = true;
      await server.kill();
      await server.up();
      restarting = false;
    },
    size: async () => Number((await client`select pg_database_size(current_database()) as size`)[0]!.size) / MB,
  };
}

export async function sqliteTarget(lab: Lab): Promise<Target> {
  const file = join(lab.dir, 'crore.db');
  const url = lab.sqlite();
  return {
    url,
    proxied: url,
    faults: {
      'file locked by others': {
        every: 10_000,
        run: async () => {
          const db = openDatabase(file);
          try {
            db.exec('BEGIN IMMEDIATE');
            await pause(300);
            db.exec('COMMIT');
          } catch (error) {
            if (!/busy|locked/i.test(String(error))) throw error;
          } finally {
            db.close();
          }
        },
      },
    },
    size: async () =>
      [file, `${file}-wal`].reduce((sum, path) => sum + (statSync(path, { throwIfNoEntry: false })?.size ?? 0), 0) / MB,
  };
}

// What a measurement asks the PostgreSQL server: a fresh database for each run, its size, and the server's CPU time.
import { connectPostgres } from '../subjects/root.mjs';
import { serverMicroseconds } from './server.mjs';

export function postgresControl(server) {
  const admin = connectPostgres({ ...server, database: 'postgres' });
  let last;
  return {
    async freshPlace(turn) {
      const database = `bench_${process.pid}_${turn}`;
      if (last) await admin.unsafe(`drop database if exists ${last} with (force)`);
      last = database;
      await admin.unsafe(`create database ${database}`);
      await admin.unsafe('checkpoint');
      return placeOf(server, database);
    },
    async heldBytes() {
      const [{ bytes }] = await admin`select pg_database_size(${last}) as bytes`;
      return Number(bytes);
    },
    busyMicroseconds: async () => serverMicroseconds(server.pid),
    async close() {
      if (last) await admin.unsafe(`drop database if exists ${last} with (force)`);
      await admin.end({ timeout: 1 });
    },
  };
}

export function placeOf({ host, port, user, pid }, database) {
  const url = `postgres://${user}@${host}:${port}/${database}`;
  return { host, port, user, pid, database, url, queue: 'bench' };
}

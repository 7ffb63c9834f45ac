import { randomUUID } from 'node:crypto';
import postgres, { type Sql } from 'postgres';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { openOutbox, type PostgresOutbox, relay } from '../../dist/outbox/index.js';
import { Program } from '../support/processes.js';
import { Line } from '../support/proxy.js';
import { RedisServer } from '../support/redis.js';
import { ROUNDS } from '../support/rounds.js';
import { until } from '../support/wait.js';

/** Jobs that are deleted as soon as they are done: their ids cannot prevent duplicates. */
const FORGOTTEN = { keep: { count: 0 } };
const WRITERS = [0, 1, 2, 3];

type Entry = [writer: number, n: number];

describe('a relay from PostgreSQL to Redis sends each job exactly once', ROUNDS, () => {
  const server = inject('postgresUrl');
  const schema = `once_${randomUUID().slice(0, 8)}`;
  const source = `${server}?schema=${schema}`;
  let sql: Sql;
  let redis: RedisServer;
  let outbox: PostgresOutbox;
  let crore: Crore;
  let seen: Entry[];
  let written: number[];
  let queue: string;
  const programs: Program[] = [];

  beforeAll(async () => {
    sql = postgres(server, { max: WRITERS.length, onnotice: () => {} });
    outbox = await openOutbox(source);
    redis = await RedisServer.start();
  });
  beforeEach(async () => {
    queue = `once-${randomUUID()}`;
    written = WRITERS.map(() => 0);
    seen = [];
    crore = await open(redis.url, { onError: () => {} });
    await crore
      .queue<Entry>(queue)
      .work(async ({ payload }) => void seen.push(payload))
      .ready();
  });
  afterEach(async () => {
    for (const program of programs.splice(0)) await program.end('SIGKILL');
    await crore.close();
  });
  afterAll(async () => {
    await outbox.close();
    await sql`drop schema ${sql(schema)} cascade`;
    await sql.end();
    await redis.stop();
  });
  /** Each writer has transactions of its own, which overlap; some are rolled back. */
  const write = (transactions: number, rows: number) =>
    Promise.all(
      WRITERS.map(async (writer) => {
        for (let t = 0; t < transactions; t++) {
          const items = Array.from({ length: rows }, (_x, i) => ({
            payload: [writer, written[writer]! + i],
            ...FORGOTTEN,
          }));
          await sql.begin((tx) => outbox.addManyIn(tx, queue, items));
          written[writer]! += rows;
          const refused = sql.begin(async (tx) => {
            await outbox.addIn(tx, queue, [writer, -1], FORGOTTEN);
            throw new Error('rolled back');
          });
          await expect(refused).rejects.toThrow('rolled back');
        }
      }),
    );
  const startRelay = async (batch: number) => {
    const program = new Program('relay', { outbox: source, url: redis.url, batch });
    programs.push(program);
    await program.line('ready');
    return program;
  };
  const checkSeen = async () => {
    const total = written.reduce((sum, n) => sum + n, 0);
    await until('everything is seen', () => seen.length >= total);
    for (const writer of WRITERS)
      expect(seen.filter(([one]) => one === writer).map(([, n]) => n)).toEqual(
        Array.from({ length: written[writer]! }, (_x, i) => i),
      );
    expect(seen).toHaveLength(total);
  };

  it('although several relays race and are killed with -9 at random moments', async () => {
    for (let round = 0; round < 3; round++) {
      await write(3, 20);
      const before = await outbox.count();
      const racers = await Promise.all([startRelay(3), startRelay(5)]);
      const more = write(2, 10);
      await until(
        'the relays have started sending',
        () => seen.length > written.reduce((sum, n) => sum + n, 0) - before,
      );
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 40)); // the moment of the kill is random
      for (const racer of racers) await racer.end('SIGKILL');
      await more;
    }
    const last = await relay(source, crore);
    await last.drained();
    await last.close();
    await checkSeen();
  });

  it('although replies of both servers are lost and connections are cut', async () => {
    const lines = await Promise.all([Line.to(Number(new URL(server).port)), Line.to(redis.port)]);
    const [near, far] = lines as [Line, Line];
    const target = await open(`redis://localhost:${far.port}`, { onError: () => {}, timeout: 1_000 });
    const through = new URL(source);
    through.port = String(near.port);
    await write(3, 20);
    let lost = 0;
    // Every few replies one is lost, although its command was executed.
    const lossy = (line: Line, every: number) => {
      let answers = 0;
      line.onReply = () => {
        if (++answers % every !== 0) return true;
        lost++;
        line.cut();
        return false;
      };
    };
    const one = await relay(through.href, target, { batch: 10, every: '50ms', onError: () => {} });
    lossy(near, 13);
    lossy(far, 7);
    await one.drained({ timeout: '50s' });
    expect(lost).toBeGreaterThan(3);
    for (const line of lines) line.mend();
    await one.close();
    await target.close();
    for (const line of lines) line.close();
    await checkSeen();
  });
});

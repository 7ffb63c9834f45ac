import { randomBytes } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { RedisServer } from '../support/redis.js';
import { inFolder, start } from './support/w8y.js';

let redis: RedisServer;
beforeAll(async () => {
  redis = await RedisServer.start();
});
afterAll(() => redis.stop());

/** Another program that uses the ring with only the documented keys and plain commands. */
async function stranger(file: string, done: () => boolean): Promise<number> {
  const client = new Redis(redis.port);
  let rounds = 0;
  while (!done()) {
    const item = await client.lmove('shared:list', 'shared:list', 'LEFT', 'RIGHT');
    const token = randomBytes(16).toString('hex');
    if (!item || (await client.set(`shared:lock:${item}`, token, 'PX', 5000, 'NX')) !== 'OK') continue;
    appendFileSync(file, `+ ${item} stranger\n`);
    await client.ping();
    appendFileSync(file, `- ${item} stranger\n`);
    await client.watch(`shared:lock:${item}`);
    if ((await client.get(`shared:lock:${item}`)) === token) await client.multi().del(`shared:lock:${item}`).exec();
    else await client.unwatch();
    rounds += 1;
  }
  client.disconnect();
  return rounds;
}

it('two w8y and another program share a ring for thousands of rounds; no item ever has two holders', async () => {
  await inFolder(async (dir) => {
    const file = join(dir, 'log');
    const items = [...'abcdefgh', 'h'];
    await redis.client.rpush('shared:list', ...items);
    // Lines appended to a file are in the order in which they were written, whoever wrote them.
    const body = `echo "+ $1 $$" >> ${file}; echo "- $1 $$" >> ${file}`;
    const args = [
      '-u',
      redis.url,
      '-k',
      'shared',
      '-cq',
      '-j',
      '2',
      '--stdin',
      'null',
      '--max-items',
      '800',
      'sh',
      '-c',
      body,
      'sh',
      '{}',
    ];
    const ours = [start(args), start(args)];
    let over = false;
    const strange = stranger(file, () => over);
    const results = await Promise.all(ours.map((each) => each.ended));
    over = true;
    const strangeRounds = await strange;

    expect(results.map(({ code, err }) => ({ code, err }))).toEqual([
      { code: 0, err: '' },
      { code: 0, err: '' },
    ]);
    const holders = new Map<string, string>();
    const rounds = { ours: 0, stranger: 0 };
    for (const line of readFileSync(file, 'utf8').trimEnd().split('\n')) {
      const [sign, item, who] = line.split(' ') as [string, string, string];
      if (sign === '+') {
        expect(holders.get(item)).toBeUndefined();
        holders.set(item, who);
      } else {
        expect(holders.get(item)).toBe(who);
        holders.delete(item);
        rounds[who === 'stranger' ? 'stranger' : 'ours'] += 1;
      }
    }
    expect(rounds).toEqual({ ours: 1600, stranger: strangeRounds });
    expect(strangeRounds).toBeGreaterThan(1000);
    expect((await redis.client.lrange('shared:list', 0, -1)).sort()).toEqual(items);
    expect(await redis.client.keys('shared:lock:*')).toEqual([]);
  });
}, 180_000);

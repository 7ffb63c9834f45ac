import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Crore, open } from '../../dist/index.js';
import { RedisServer } from '../support/redis.js';
import { startSentinel, startTlsRedis } from '../support/servers.js';
import { until } from '../support/wait.js';

describe('connecting to Redis', () => {
  const cleanups: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  const folder = () => {
    const dir = mkdtempSync(join(tmpdir(), 'crore-servers-'));
    cleanups.push(() => rmSync(dir, { recursive: true, force: true }));
    return dir;
  };
  const serve = async (...args: Parameters<typeof RedisServer.start>) => {
    const redis = await RedisServer.start(...args);
    cleanups.push(() => redis.stop());
    return redis;
  };
  const use = async (url: string): Promise<Crore> => {
    const crore = await open(url, { onError: () => {}, timeout: 8_000 });
    cleanups.push(() => crore.close());
    return crore;
  };
  const roundTrip = async (crore: Crore) => {
    const queue = crore.queue<number, number>('trip');
    queue.work(async (job) => job.payload + 1);
    return (await queue.add(1)).finished({ timeout: '10s' });
  };

  it('supports a user with a password and restricted keys, and another database', async () => {
    const redis = await serve();
    const password = 'pa ss/w:ord@';
    await redis.client.call(
      'ACL',
      'SETUSER',
      'app',
      'on',
      `>${password}`,
      'resetchannels',
      '~mine:*',
      '&mine:*',
      '+@all',
    );
    const login = `app:${encodeURIComponent(password)}`;
    expect(await roundTrip(await use(`redis://${login}@127.0.0.1:${redis.port}/3?prefix=mine`))).toBe(2);
    expect(await redis.client.dbsize()).toBe(0);
    const wrong = await open(`redis://app:no@127.0.0.1:${redis.port}`, { timeout: 2_000 }).catch((error) => error);
    expect(wrong).toMatchObject({ code: 'STORE_UNREACHABLE', message: expect.stringContaining('WRONGPASS') });
  });

  it('supports a user with only the documented permissions: no INFO, no CONFIG', async () => {
    const redis = await serve();
    const guide = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8');
    const rule = /ACL SETUSER (.*)/.exec(guide)![1]!.replace('SECRET', 'pw').split(' ');
    await redis.client.call('ACL', 'SETUSER', ...rule);
    const crore = await use(`redis://crore:pw@127.0.0.1:${redis.port}`);
    expect(await roundTrip(crore)).toBe(2);
    const queue = crore.queue<number>('all');
    const events = await queue.events();
    await queue.add(1, { group: 'g', unique: 'k', delay: 1 });
    for await (const { type } of events) {
      expect(type).toBe('added');
      break;
    }
    await queue.setLimits({ concurrency: 1, group: { rate: { count: 5, per: '1s' } } });
    await crore.queue('after').add(1, { needs: [{ queue: 'all', id: (await queue.add(2)).id }] });
    await queue.push('task');
    const worker = queue.work(async (job) => {
      await job.progress(1);
      await job.log('line');
    });
    await until('the dependent job becomes ready', async () => (await crore.queue('after').count()).ready === 1);
    await worker.close();
    await queue.list('done');
    await queue.obliterate();
    const account = redis.client.duplicate({ username: 'crore', password: 'pw' });
    account.on('error', () => {});
    cleanups.push(() => account.disconnect());
    await expect(account.info()).rejects.toThrow('NOPERM');
  });

  it('supports TLS with certificates verified on both sides', async () => {
    const { redis, port, files } = await startTlsRedis(folder());
    cleanups.push(() => redis.stop());
    expect(await roundTrip(await use(`rediss://localhost:${port}?${files}`))).toBe(2);
    const unknown = await open(`rediss://localhost:${port}`, { timeout: 2_000 }).catch((error) => error);
    expect(unknown).toMatchObject({ code: 'STORE_UNREACHABLE', message: expect.stringMatching(/certificate/i) });
    await expect(open(`rediss://localhost:${port}?ca=/no/such.pem`)).rejects.toMatchObject({
      code: 'BAD_URL',
      message: expect.stringContaining('/no/such.pem'),
    });
  });

  it('supports Sentinel: workers follow when the primary is killed and a replica takes over', async () => {
    const primary = await serve();
    const replica = await serve(['--replicaof', '127.0.0.1', String(primary.port)]);
    await until('replication is established', async () =>
      (await replica.client.info('replication')).includes('master_link_status:up'),
    );
    const sentinel = await startSentinel(folder(), primary.port);
    cleanups.push(() => sentinel.stop());
    const crore = await use(`redis+sentinel://127.0.0.1:${sentinel.port}/main`);
    const queue = crore.queue<string>('follow');
    const seen: string[] = [];
    queue.work(async (job) => void seen.push(job.payload), { lease: 2_000, heartbeat: 300, sweep: 200 });
    await queue.add('before');
    await until('the first job runs', () => seen.includes('before'));
    await until('the sentinel knows the replica', async () => {
      const client = replica.client.duplicate({ port: sentinel.port });
      const replicas = (await client.call('SENTINEL', 'REPLICAS', 'main')) as unknown[];
      client.disconnect();
      return replicas.length === 1;
    });
    await primary.down();
    await until(
      'the new primary accepts an add',
      () =>
        queue.add('after').then(
          () => true,
          () => false,
        ),
      { within: 40_000 },
    );
    await until('the job added after the failover runs', () => seen.includes('after'), { within: 20_000 });
    expect(await replica.client.info('replication')).toContain('role:master');
  });
});

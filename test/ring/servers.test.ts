import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addSlots, RedisServer } from '../support/redis.js';
import { startSentinel, startTlsRedis } from '../support/servers.js';
import { until } from '../support/wait.js';
import { inFolder, run, start } from './support/w8y.js';

const servers: RedisServer[] = [];
const serve = async (...args: Parameters<typeof RedisServer.start>): Promise<RedisServer> => {
  const server = await RedisServer.start(...args);
  servers.push(server);
  return server;
};
afterAll(async () => {
  for (const server of servers) await server.stop();
});

const echo = (url: string, prefix = 'w') => run(['-u', url, '-k', prefix, 'echo', '{}']);

describe('a server with users and databases', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await serve();
    await redis.client.call('ACL', 'SETUSER', 'worker', 'on', '>pa ss/w:ord', '~w:*', '+@all', '-flushall');
    await redis.client.rpush('w:list', 'zero');
    await redis.client.select(3);
    await redis.client.rpush('w:list', 'three');
    await redis.client.select(0);
  });

  it('is accessed with the user, password and database of the URL', async () => {
    const url = `redis://worker:${encodeURIComponent('pa ss/w:ord')}@127.0.0.1:${redis.port}`;
    expect(await echo(url)).toMatchObject({ code: 0, out: 'zero\n' });
    expect(await echo(`${url}/3`)).toMatchObject({ code: 0, out: 'three\n' });
    expect(await echo(`redis://localhost:${redis.port}?db=3`)).toMatchObject({ code: 0, out: 'three\n' });
  });

  it('refuses a wrong password, forbidden keys and a missing database: exit 2 and the reason', async () => {
    const wrong = await echo(`redis://worker:no@localhost:${redis.port}`);
    expect({ code: wrong.code, named: /WRONGPASS/.test(wrong.err) }).toEqual({ code: 2, named: true });
    const url = `redis://worker:${encodeURIComponent('pa ss/w:ord')}@localhost:${redis.port}`;
    const keys = await echo(url, 'others');
    expect({ code: keys.code, named: /NOPERM|No permissions/i.test(keys.err) }).toEqual({ code: 2, named: true });
    const db = await echo(`redis://localhost:${redis.port}/99`);
    expect({ code: db.code, named: /DB index/i.test(db.err) }).toEqual({ code: 2, named: true });
  });

  it('works on nothing after a refused login or database', async () => {
    await redis.client.rpush('safe:list', 'a');
    await echo(`redis://worker:no@localhost:${redis.port}`, 'safe');
    await echo(`redis://localhost:${redis.port}/99`, 'safe');
    expect(await redis.client.keys('safe:lock:*')).toEqual([]);
  });

  it('is reached by IP address as well as by name', async () => {
    expect((await echo(`redis://127.0.0.1:${redis.port}`)).out).toBe('zero\n');
  });

  it('ends a continuous run immediately when the user is refused', async () => {
    const { code } = await run(['-u', `redis://worker:no@localhost:${redis.port}`, '-k', 'w', '-cq', 'true']);
    expect(code).toBe(2);
  });
});

describe('other ways to connect to a server', () => {
  it('a Unix socket, as a URL and as a path', async () => {
    await inFolder(async (dir) => {
      const socket = join(dir, 'redis.sock');
      const redis = await RedisServer.start(['--unixsocket', socket]);
      try {
        await redis.client.rpush('w:list', 'a');
        expect((await echo(`unix://${socket}`)).out).toBe('a\n');
        expect((await echo(socket)).out).toBe('a\n');
        expect((await echo(`${socket}.not`)).code).toBe(2);
      } finally {
        await redis.stop();
      }
    });
  });

  it('TLS, with certificate verification', async () => {
    await inFolder(async (dir) => {
      const { redis, port, files } = await startTlsRedis(dir);
      try {
        await redis.client.rpush('w:list', 'secret');
        expect(await echo(`rediss://localhost:${port}?${files}`)).toMatchObject({ code: 0, out: 'secret\n' });
        const unknown = await echo(`rediss://localhost:${port}`);
        expect(unknown.code).toBe(2);
        expect(unknown.err).toMatch(/certificate/i);
      } finally {
        await redis.stop();
      }
    });
  });

  it('Sentinel: the primary is found by its name', async () => {
    const primary = await serve();
    await primary.client.rpush('w:list', 'primary');
    await inFolder(async (dir) => {
      const { port, stop } = await startSentinel(dir, primary.port);
      try {
        const url = `redis+sentinel://127.0.0.1:${port}/main`;
        await until('the sentinel to answer', async () => (await echo(url)).code === 0);
        expect(await echo(url)).toMatchObject({ code: 0, out: 'primary\n' });
      } finally {
        await stop();
      }
    });
  });

  it('Cluster: a ring with a {tag} works, and one without is refused', async () => {
    const node = await serve(['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1']);
    await addSlots(node, 0, 16_383);
    await until('the cluster to be up', async () =>
      String(await node.client.call('CLUSTER', 'INFO')).includes('state:ok'),
    );
    await node.client.rpush('{tag}:list', 'a');
    const url = `redis+cluster://127.0.0.1:${node.port}`;
    expect(await echo(url, '{tag}')).toMatchObject({ code: 0, out: 'a\n' });
    const child = start(['-u', url, '-k', '{tag}', '-x', '1', '-q', 'sh', '-c', 'echo on; sleep 2']);
    await child.says('on');
    const token = await node.client.getBuffer('{tag}:lock:a');
    await new Promise((resolve) => setTimeout(resolve, 1300));
    expect(await node.client.getBuffer('{tag}:lock:a')).toEqual(token);
    expect((await child.ended).code).toBe(0);
    const untagged = await echo(url, 'none');
    expect(untagged.code).toBe(2);
    expect(untagged.err).toContain('{tag}');
  });
});

import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, readFileSync, statSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CroreError } from '../../dist/index.js';
import { openStore } from '../../dist/store/open.js';
import { parseStoreUrl } from '../../dist/store/url.js';
import { Line } from '../cli/support/crore.js';
import { PostgresServer } from '../support/postgres.js';
import { freePort } from '../support/redis.js';
import { until } from '../support/wait.js';

const timeout = 3_000;

describe('opening a store on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server.stop());

  const refused = (url: string) =>
    openStore(url, { timeout }).then(
      () => {
        throw new Error(`${url} was opened`);
      },
      (error: CroreError) => error,
    );
  const schemas = async () =>
    (await server.client`select nspname from pg_namespace`).map((row) => row.nspname as string);
  const opens = async (url: string) => {
    const store = await openStore(url, { timeout });
    await store.push('q', [Buffer.from('task')]);
    const { ready } = await store.count('q');
    await store.close();
    return ready;
  };

  it('says that there is no server', async () => {
    const error = await refused(`postgres://crore@127.0.0.1:${await freePort()}/postgres`);
    expect(error).toMatchObject({ code: 'STORE_UNREACHABLE', message: expect.stringContaining('ECONNREFUSED') });
  });

  it('says that the password is wrong, without showing it', async () => {
    await server.client`create role secretive login password 'right'`;
    await server.allow(
      'host all secretive 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\nlocal all all trust',
    );
    const error = await refused(`postgres://secretive:wr0ng@127.0.0.1:${server.port}/postgres`);
    expect(error).toMatchObject({ code: 'STORE_UNREACHABLE', message: expect.stringMatching(/password.*secretive/) });
    expect(JSON.stringify([error, error.message, error.stack])).not.toContain('wr0ng');
    await server.client`grant create on database postgres to secretive`;
    expect(await opens(`postgres://secretive:right@127.0.0.1:${server.port}/postgres?schema=own`)).toBe(1);
  });

  it('takes from the PG* variables what the URL leaves out', async () => {
    await server.client`create role surrounded login password 'right'`;
    await server.client`create schema surroundings authorization surrounded`;
    await server.allow(
      'host all surrounded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\nlocal all all trust',
    );
    const env = { PGHOST: '127.0.0.1', PGPORT: String(server.port), PGUSER: 'surrounded', PGDATABASE: 'postgres' };
    const push = (more: Record<string, string>) =>
      new Line('postgres://?schema=surroundings').run(['push', 'q', 'x'], { env: { ...env, ...more } });
    expect(await push({ PGPASSWORD: 'wrong' })).toMatchObject({ code: 69, err: /password.*"surrounded"/ });
    expect(await push({ PGPASSWORD: 'right' })).toMatchObject({ code: 0, err: '' });
    expect(await server.client`select 1 from surroundings.records`).toHaveLength(1);
  });

  it('refuses a server that is too old', async () => {
    // The version that this server reports is changed on its way.
    const { server_version_num: version } = (await server.client`show server_version_num`)[0]!;
    const proxy = createServer((socket) => {
      const onward = connect(server.port, '127.0.0.1');
      onward.on('data', (bytes) => {
        socket.write(Buffer.from(bytes.toString('latin1').replaceAll(version, '120022'), 'latin1'));
      });
      socket.pipe(onward).on('error', () => socket.destroy());
      socket.on('error', () => onward.destroy()).on('close', () => onward.destroy());
    });
    const port = await freePort();
    await new Promise<void>((resolve) => void proxy.listen(port, '127.0.0.1', resolve));
    const error = await refused(`postgres://crore@127.0.0.1:${port}/postgres?schema=ancient`);
    expect(error).toMatchObject({ code: 'STORE_UNSUPPORTED', message: /is PostgreSQL 12, Crore needs 13 or newer/ });
    expect(await schemas()).not.toContain('ancient');
    await new Promise((resolve) => proxy.close(resolve));
  });

  it('says that the database is missing', async () => {
    const error = await refused(`postgres://crore@127.0.0.1:${server.port}/nowhere`);
    expect(error).toMatchObject({ code: 'STORE_UNREACHABLE', message: expect.stringContaining('"nowhere"') });
  });

  it('says which privilege is missing, and creates nothing', async () => {
    await server.client`create role poor login`;
    const url = `postgres://poor@127.0.0.1:${server.port}/postgres?schema=`;
    expect(await refused(`${url}none`)).toMatchObject({
      code: 'STORE_READONLY',
      message: /'poor' has no CREATE privilege/,
    });
    await server.client`create schema closed`;
    expect(await refused(`${url}closed`)).toMatchObject({ code: 'STORE_READONLY', message: /no USAGE privilege/ });
    expect(await schemas()).not.toContain('none');
  });

  it('uses an empty schema that an administrator has created for its role', async () => {
    await server.client`create role tenant login`;
    await server.client`create schema tenancy authorization tenant`;
    expect(await opens(`postgres://tenant@127.0.0.1:${server.port}/postgres?schema=tenancy`)).toBe(1);
  });

  it('needs no more than the documented role and schema', async () => {
    await server.client`create database documented`;
    const guide = readFileSync(new URL('../../docs/postgres.md', import.meta.url), 'utf8');
    const statements = /```sql\n([^`]*)```/.exec(guide)![1]!;
    const admin = postgres(server.url.replace(/\/postgres$/, '/documented'), { max: 1 });
    await admin.unsafe(statements);
    await admin.end();
    expect(await opens(`postgres://jobs:SECRET@127.0.0.1:${server.port}/documented`)).toBe(1);
  });

  it('refuses a schema that another program has made, and leaves it alone', async () => {
    await server.client`create schema other create table things (n int)`;
    const error = await refused(`${server.url}?schema=other`);
    expect(error).toMatchObject({ code: 'STORE_CORRUPT', message: expect.stringContaining('"other"') });
    const tables = await server.client`select relname from pg_class where relnamespace = 'other'::regnamespace`;
    expect(tables.map((row) => row.relname)).toEqual(['things']);
  });

  it('refuses a newer format', async () => {
    await opens(`${server.url}?schema=newer`);
    await server.client`update newer.crore_format set version = 99`;
    expect(await refused(`${server.url}?schema=newer`)).toMatchObject({ code: 'STORE_NEWER', message: /format 99/ });
  });

  it('refuses an encoding that cannot hold every text, and an isolation level under which locks do not help', async () => {
    await server.client`create database latin encoding 'LATIN1' template template0`;
    const latin = await refused(`postgres://crore@127.0.0.1:${server.port}/latin`);
    expect(latin).toMatchObject({ code: 'STORE_UNSUPPORTED', message: expect.stringContaining('LATIN1') });
    await server.client`create role strict login superuser`;
    await server.client`alter role strict set default_transaction_isolation = 'serializable'`;
    const strict = await refused(`postgres://strict@127.0.0.1:${server.port}/postgres`);
    expect(strict).toMatchObject({ code: 'STORE_UNSUPPORTED', message: expect.stringContaining('serializable') });
  });

  it('is created once, however many processes open it at the same time', async () => {
    const stores = await Promise.all(
      Array.from({ length: 6 }, () => openStore(`${server.url}?schema=race`, { timeout: 20_000 })),
    );
    await Promise.all(stores.map((store) => store.push('q', [Buffer.from('task')])));
    expect((await stores[0]!.count('q')).ready).toBe(6);
    await Promise.all(stores.map((store) => store.close()));
    expect(await server.client`select version from race.crore_format`).toHaveLength(1);
  });

  it('keeps stores in two schemas apart, whatever their names', async () => {
    const name = `It's "quoted"; crore.`;
    expect(await opens(`${server.url}?schema=${encodeURIComponent(name)}`)).toBe(1);
    expect(await opens(`${server.url}?schema=second`)).toBe(1);
    expect(await schemas()).toContain(name);
  });

  it('works over a unix socket, and without prepared statements', async () => {
    const url = `postgresql://crore@/postgres?host=${server.dir}&schema=socket`;
    expect(parseStoreUrl(url)).toMatchObject({ kind: 'postgres', socket: server.dir, nodes: [] });
    const path = `postgresql://crore@:${server.port}/postgres?host=${server.dir}&schema=socket&prepare=false`;
    expect(await opens(path)).toBe(1);
  });
});

describe('PostgreSQL over TLS', () => {
  it('verifies the certificate of the server as sslmode says', async () => {
    const server = await PostgresServer.start();
    const [cert, key] = [join(server.dir, 'data', 'server.crt'), join(server.dir, 'data', 'server.key')];
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
    const args = [
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      key,
      '-out',
      cert,
      '-days',
      '2',
      ...subject,
    ];
    execFileSync('openssl', args, { stdio: 'ignore' });
    const { uid, gid } = statSync(join(server.dir, 'data'));
    for (const file of [cert, key]) chownSync(file, uid, gid);
    chmodSync(key, 0o600);
    await server.client`alter system set ssl = on`;
    await server.allow('hostssl all all 127.0.0.1/32 trust\nlocal all all trust');
    const url = (parameters: string, host = 'localhost') =>
      `postgres://crore@${host}:${server.port}/postgres?schema=tls&${parameters}`;
    const outcome = (address: string) =>
      openStore(address, { timeout }).then(
        (store) => store.close(),
        (error: Error) => error.message,
      );
    await until('the server insists on TLS', async () =>
      /no encryption/.test((await outcome(url('sslmode=disable'))) ?? ''),
    );
    expect(await outcome(url('sslmode=require'))).toBeUndefined();
    expect(await outcome(url('sslmode=verify-full'))).toMatch(/certificate/);
    expect(await outcome(url(`sslmode=verify-full&sslrootcert=${cert}`))).toBeUndefined();
    expect(await outcome(url(`sslmode=verify-full&sslrootcert=${cert}`, '127.0.0.1'))).toMatch(/certificate|altnames/);
    expect(await outcome(url(`sslmode=verify-ca&sslrootcert=${cert}`, '127.0.0.1'))).toBeUndefined();
    expect(await outcome(url('sslrootcert=/no/such.pem'))).toMatch(/such\.pem/);
    // The server wants to know who we are: its own certificate is as good as another one.
    await server.client.unsafe(`alter system set ssl_ca_file = '${cert}'`);
    await server.allow('hostssl all all 127.0.0.1/32 trust clientcert=verify-ca\nlocal all all trust');
    const insists = async () => /client certificate/.test((await outcome(url('sslmode=require'))) ?? '');
    await until('the server insists on a certificate', insists);
    expect(await outcome(url(`sslmode=verify-full&sslrootcert=${cert}&sslcert=${cert}&sslkey=${key}`))).toBeUndefined();
    await server.stop();
  });
});

describe('URLs of PostgreSQL', () => {
  it.each([
    ['postgres://h/db?schema=pg_mine', 'schema'],
    ['postgres://h/db?schema=', 'schema'],
    ['postgres://h/db?sslmode=sometimes', 'sslmode'],
    ['postgres://h/db/more', 'database'],
    ['postgres://h:99999/db', 'port'],
    ['postgres://h/db?colour=red', "'colour'"],
    ['postgres://h/db?prepare=maybe', "'prepare'"],
    ['postgres://h/db?listen=h:99999', 'port'],
  ])('%s is refused', (url, why) => {
    expect(() => parseStoreUrl(url)).toThrow(why);
  });

  it('leave to the environment what they do not say', () => {
    expect(parseStoreUrl('postgres://')).toEqual({ kind: 'postgres', nodes: [], schema: 'crore' });
  });
});

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, expectTypeOf, inject, it } from 'vitest';
import { type Codec, type Crore, CroreError, open } from '../../dist/index.js';
import { openDatabase } from '../../dist/store/sqlite/file/driver.js';
import { freshSqlite } from '../support/stores.js';
import { until } from '../support/wait.js';

const URLS: [string, () => string][] = [
  ['sqlite', () => 'sqlite::memory:'],
  ['redis', () => `${inject('redisUrl')}?prefix=codecs`],
];

/** A toy cipher: a key in front, so that another key is noticed, and every byte changed by it. */
function xor(key: number): Codec {
  const turn = (bytes: Uint8Array) => bytes.map((byte) => byte ^ key);
  return {
    encode: (bytes) => Buffer.concat([Buffer.of(key), turn(bytes)]),
    decode(bytes) {
      if (bytes[0] !== key) throw new Error('wrong key');
      return turn(bytes.subarray(1));
    },
  };
}

describe.each(URLS)('codecs on %s', (_name, url) => {
  let crore: Crore;
  const failures: CroreError[] = [];
  beforeAll(async () => {
    const logger = {
      warn: ({ err }: { err?: CroreError }) => void (err && failures.push(err)),
      error: () => {},
    };
    crore = await open(url(), { logger, onError: () => {}, maxPayload: 10_000 });
  });
  afterAll(() => crore.close());

  const VALUES: [string, unknown][] = [
    ['an object', { to: 'ada', text: 'grüße\0' }],
    ['text', ''],
    ['null', null],
    ['a number', 0],
    ['bytes', new Uint8Array([0, 1, 255])],
    ['no bytes', new Uint8Array(0)],
    ['bytes that look like JSON', Buffer.from('{"a":1}')],
  ];
  it.each(VALUES)('%s comes back as what it was, as payload and as result', async (what, value) => {
    const queue = crore.queue<unknown, unknown>(`values ${what}`, { codec: xor(7) });
    const seen: unknown[] = [];
    const worker = queue.work(async (job) => {
      seen.push(job.payload);
      return job.payload;
    });
    const handle = await queue.add(value);
    const results = [await handle.finished(), await handle.result(), await queue.handle(handle.id).finished()];
    const views = [await handle.get(), await queue.get(handle.id), ...(await queue.list('done')).jobs];
    expect(views).toHaveLength(3);
    const all = [...seen, ...results, ...views.flatMap((view) => [view!.payload, view!.result])];
    expect(all.map(comparable)).toEqual(all.map(() => comparable(value)));
    expect(views.every((view) => !('undecoded' in view!))).toBe(true);
    await worker.close();
  });

  it('the store sees encoded bytes only', async () => {
    const codec = xor(7);
    const queue = crore.queue<object, string>('stored', { codec });
    queue.work(async () => 'a secret result');
    const { id } = await queue.add({ secret: 'a secret payload' });
    await queue.handle(id).finished();
    const stored = await crore.queue('stored').get(id);
    for (const value of [stored!.payload, stored!.result] as Uint8Array[]) {
      expect(value).toBeInstanceOf(Uint8Array);
      expect(value[0]).toBe(7);
      expect(Buffer.from(value).toString('latin1')).not.toContain('secret');
      expect(Buffer.from(codec.decode(value)).toString()).toContain('secret');
    }
  });

  it('addMany and push encode; progress, logs, errors and headers stay as they are', async () => {
    const queue = crore.queue<{ n: number }>('plain parts', { codec: xor(9) });
    const seen: unknown[] = [];
    const worker = queue.work(
      async (job) => {
        seen.push(job.isTask || job.attempt === 2 ? Buffer.from(job.payload as never).toString() : job.payload);
        if (job.isTask) throw new Error('an error in plain text');
        await job.progress({ half: true });
        await job.log('a line');
        return 'done';
      },
      { backoff: () => 1 },
    );
    const handles = await queue.addMany([{ payload: { n: 1 }, headers: { tenant: 'a' } }, { payload: { n: 2 } }]);
    for (const handle of handles) await handle.finished();
    const plain = await crore.queue('plain parts').get(handles[0]!.id);
    expect(plain).toMatchObject({ headers: { tenant: 'a' }, progress: { half: true }, log: ['a line'] });
    await queue.push('raw bytes');
    await until('the task became a job and is done', () => seen.length === 4);
    expect(seen).toEqual([{ n: 1 }, { n: 2 }, 'raw bytes', 'raw bytes']);
    const done = await until('its record', async () =>
      (await queue.list('done')).jobs.find((job) => job.attempt === 2),
    );
    expect(Buffer.from(done!.payload as never).toString()).toBe('raw bytes');
    expect(done!.result).toBe('done');
    expect(done!.attempts[0]!.error!.message).toBe('an error in plain text');
    expect(done).not.toHaveProperty('undecoded');
    const stored = (await crore.queue('plain parts').get(done!.id))!.payload as Uint8Array;
    expect(Buffer.from(stored).toString('latin1')).not.toContain('raw');
    await worker.close();
  });

  it('raw tasks are read in the form that the worker asks for; those of others have to decode', async () => {
    const queue = crore.queue<{ n: number }>('raw', { codec: { ...xor(9), plain: 'accept' } });
    await queue.push(['{"n":1}', '{"n":2}']);
    await crore.queue('raw').push('{"n":3}');
    const seen: unknown[] = [];
    const worker = queue.work(async (job) => seen.push(job.payload), { tasks: 'json', backoff: () => 60_000 });
    const failed = await until('the third has failed', async () => (await queue.list('scheduled')).jobs[0]);
    expect(seen).toEqual([{ n: 1 }, { n: 2 }]);
    expect(failed!.error).toBe('BAD_PAYLOAD: the payload cannot be decoded: wrong key');
    expect(failed!.undecoded).toEqual({ payload: 'the payload cannot be decoded: wrong key' });
    expect(Buffer.from(failed!.payload as never).toString()).toBe('{"n":3}');
    await worker.close();
  });

  it('errors about what is no JSON do not quote it', async () => {
    const secret: Codec = { encode: (bytes) => bytes, decode: () => Buffer.from('\x01a secret') };
    const { id } = await crore.queue('quotes').add(Buffer.of(1));
    const view = await crore.queue('quotes', { codec: secret }).get(id);
    expect(view!.undecoded!.payload).toBe('the payload cannot be decoded: what codec.decode returned is not JSON');
  });

  it('filters by text do not see inside', async () => {
    const queue = crore.queue('filters', { codec: xor(9) });
    await queue.add({ to: 'ada' }, { headers: { tenant: 'acme' } });
    expect((await queue.list('ready', { filter: { text: 'ada' } })).jobs).toEqual([]);
    expect((await queue.list('ready', { filter: { text: 'acme' } })).jobs).toHaveLength(1);
  });

  it('a page with records that cannot be decoded shows them as bytes, marked with the reason', async () => {
    const queue = crore.queue<unknown>('mixed', { codec: xor(1) });
    await queue.add('good', { id: 'good' });
    await crore.queue('mixed', { codec: xor(2) }).add('x', { id: 'other key' });
    await crore.queue('mixed').add({ to: 'ada' }, { id: 'plain' });
    await crore.queue('mixed').add(new Uint8Array([1, 0, 5]), { id: 'garbage' });
    const { jobs } = await queue.list('ready');
    expect(jobs.map(({ id, undecoded }) => [id, undecoded?.payload])).toEqual([
      ['good', undefined],
      ['other key', 'the payload cannot be decoded: wrong key'],
      ['plain', "the payload cannot be decoded: it did not go through the codec (codec.plain is 'refuse')"],
      ['garbage', expect.stringMatching(/^the payload cannot be decoded: /)],
    ]);
    expect(jobs[0]!.payload).toBe('good');
    expect(Buffer.from(jobs[2]!.payload as Uint8Array).toString()).toBe('{"to":"ada"}');
    expect((await queue.get('garbage'))!.payload).toEqual(Buffer.of(1, 0, 5));
  });

  it('a handler never gets a payload that cannot be decoded: the attempt fails, and another worker may have the key', async () => {
    const handle = await crore.queue('keys', { codec: xor(2) }).add('x');
    const seen: unknown[] = [];
    const wrong = crore.queue('keys', { codec: xor(1) }).work(async (job) => seen.push(job.payload), {
      backoff: () => 300,
    });
    await until('two attempts failed', async () => ((await handle.get())?.attempts.length ?? 0) >= 2);
    await wrong.close();
    expect(seen).toEqual([]);
    const { attempts, error } = (await handle.get())!;
    expect(attempts[0]!.error).toMatchObject({
      name: 'BAD_PAYLOAD',
      message: 'the payload cannot be decoded: wrong key',
    });
    expect(error).toBe('BAD_PAYLOAD: the payload cannot be decoded: wrong key');
    expect(failures.find((one) => one.message.includes('wrong key'))?.code).toBe('BAD_PAYLOAD');
    const right = crore.queue('keys', { codec: xor(2) }).work(async (job) => job.payload);
    expect(await handle.finished()).toBe('x');
    await right.close();
  });

  it('a result that cannot be decoded is refused by finished() and result(), and shown as bytes by get()', async () => {
    const queue = crore.queue<string, string>('results', { codec: xor(1) });
    const worker = queue.work(async () => 'ok');
    const { id } = await queue.add('x');
    await queue.handle(id).finished();
    await worker.close();
    const other = crore.queue<string, string>('results', { codec: xor(2) });
    const code = { code: 'BAD_PAYLOAD', message: expect.stringContaining('wrong key') };
    await expect(other.handle(id).finished()).rejects.toMatchObject(code);
    await expect(other.handle(id).result()).rejects.toMatchObject(code);
    const view = (await other.get(id))!;
    expect(view.result).toBeInstanceOf(Uint8Array);
    expect(Object.keys(view.undecoded!)).toEqual(['payload', 'result']);
  });

  it('plain JSON, as from a schedule, is refused, or accepted on request', async () => {
    await crore.schedule('nightly', '1h', { queue: 'plain', payload: { to: 'ops' } });
    const strict = crore.queue('plain', { codec: xor(1) }).work(async () => 'never', { backoff: () => 500 });
    const scheduled = await crore.runSchedule('nightly');
    await until('it failed', async () => (await scheduled.get())?.error?.includes("codec.plain is 'refuse'"));
    await strict.close();
    const queue = crore.queue('plain', { codec: { ...xor(1), plain: 'accept' } });
    queue.work(async (job) => job.payload);
    expect(await queue.handle(scheduled.id).finished()).toEqual({ to: 'ops' });
    expect(await (await queue.add('encoded')).finished()).toBe('encoded');
    await crore.unschedule('nightly');
  });

  it('a schema validates the decoded value, in add and before the handler', async () => {
    const schema = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value: unknown) =>
          typeof value === 'number' ? { value: `n${value}` } : { issues: [{ message: 'no number' }] },
        types: undefined as unknown as { input: number; output: string },
      },
    } as const;
    const queue = crore.queue('schema', { schema, codec: xor(3) });
    await expect(queue.add('x' as never)).rejects.toMatchObject({ code: 'BAD_PAYLOAD' });
    queue.work(async (job) => {
      expectTypeOf(job.payload).toEqualTypeOf<string>();
      return job.payload;
    });
    expect(await (await queue.add(5)).finished()).toBe('n5');
    const bad = await crore.queue('schema', { codec: xor(3) }).add('text');
    await expect(bad.finished()).rejects.toMatchObject({ code: 'JOB_DEAD', message: /no number/ });
  });

  it('maxPayload applies to the encoded size', async () => {
    const doubling: Codec = { encode: (bytes) => Buffer.concat([bytes, bytes]), decode: (bytes) => bytes };
    const halving: Codec = { encode: () => Buffer.of(1), decode: (bytes) => bytes };
    await expect(crore.queue('sizes', { codec: doubling }).add('x'.repeat(6_000))).rejects.toMatchObject({
      code: 'PAYLOAD_TOO_LARGE',
    });
    await crore.queue('sizes', { codec: halving }).add('x'.repeat(60_000));
  });

  it('an encoder that fails refuses the job, and the result', async () => {
    const failing = (by: unknown): Codec => ({ encode: () => by as Uint8Array, decode: (bytes) => bytes });
    const adding = (codec: Codec) => crore.queue('failing', { codec }).add('x');
    const message = "payload for queue 'failing' cannot be encoded: codec.encode must return bytes, not a promise";
    await expect(adding(failing(Promise.resolve()))).rejects.toMatchObject({ code: 'BAD_PAYLOAD', message });
    await expect(adding(failing('text'))).rejects.toMatchObject({ message: /must return bytes, not 'text'/ });
    const once: Codec = { ...failing(undefined), plain: 'accept' };
    crore.queue('failing', { codec: once }).work(async () => 'a result');
    const handle = await crore.queue('failing').add('x');
    await expect(handle.finished()).rejects.toMatchObject({ code: 'JOB_DEAD', message: /cannot be encoded/ });
  });
});

describe('codecs', () => {
  it.each([
    ['null', null, 'codec must be an object'],
    ['a function', () => {}, 'codec must be an object'],
    ['no decode', { encode: () => {} }, 'codec.decode must be a function'],
    ['no encode', { decode: () => {} }, 'codec.encode must be a function'],
    ['plain', { encode: () => {}, decode: () => {}, plain: true }, 'codec.plain must be one of accept, refuse'],
  ])('options are checked at once: %s', async (_what, codec, words) => {
    await using crore = await open('sqlite::memory:');
    const queue = () => crore.queue('bad', { codec: codec as never });
    expect(queue).toThrow(words);
    expect(queue).toThrow(CroreError);
  });

  it('addIn and addManyIn encode, too', async () => {
    const store = await freshSqlite();
    await using crore = await open(store.url);
    const queue = crore.queue<string>('mails', { codec: xor(5) });
    const db = openDatabase(store.url.slice('sqlite:'.length));
    const handles = [queue.addIn(db as never, 'a'), ...queue.addManyIn(db as never, [{ payload: 'b' }])];
    db.close();
    expect((await crore.queue('mails').get(handles[0]!.id))!.payload).toBeInstanceOf(Uint8Array);
    expect(await Promise.all(handles.map(async (one) => (await one.get())?.payload))).toEqual(['a', 'b']);
    await crore.close();
    await store.stop();
  });

  it.each([
    ['encryption', 'sent to ada and sent to bob\nstored with key 2 in 42 bytes\n'],
    ['compression', '170000 characters\nstored in less than 1 KB: true\n'],
  ])('examples/codecs/%s.mjs runs', (name, expected) => {
    const file = fileURLToPath(new URL(`../../examples/codecs/${name}.mjs`, import.meta.url));
    const { stdout, stderr, status } = spawnSync(process.execPath, [file], { encoding: 'utf8', timeout: 30_000 });
    expect({ stdout, stderr, status }).toEqual({ stdout: expected, stderr: '', status: 0 });
  });
});

function comparable(value: unknown): unknown {
  return value instanceof Uint8Array ? { bytes: Buffer.from(value).toString('hex') } : value;
}

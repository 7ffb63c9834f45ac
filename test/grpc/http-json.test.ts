import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_SPEC } from '../../dist/job/spec.js';
import { Crore } from '../../dist/proto/crore/v1/crore_pb.js';
import { startServer } from './support/server.js';

let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  server = await startServer({ grace: 100 });
});
afterAll(() => server.close());

/** The parts of answers that the tests look at. */
interface Answer {
  found: { job?: { payload?: unknown } }[];
  counts: object;
  jobs: object[];
  leases: object[];
  entries: { lease: { token: string; id: string } }[];
}

async function call(name: string, body: unknown): Promise<{ status: number; text: string; json: Answer }> {
  const answer = await fetch(`${server.http}/crore.v1.Crore/${name}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, text, json: JSON.parse(text) as Answer };
}

describe('HTTP/JSON', () => {
  it('takes and returns plain JSON', async () => {
    const jobs = [
      { id: 'a', payload: { to: 'ada', n: [1, null, 'ü'] }, delay: '90s', options: { attempts: 2 } },
      { id: 'b', payload: null },
      { id: 'c', payload: { $bytes: 'AAEC' } },
      { id: 'd', payload: { json: 'is no longer special', data: 1 } },
      { id: 'e', payload: 'text', delay: 1_500 },
    ];
    const added = await call('Add', { queue: 'plain', jobs });
    expect(added.json).toEqual({ results: jobs.map(({ id }) => ({ outcome: 'created', id })) });
    const found = (await call('Get', { queue: 'plain', ids: ['a', 'b', 'c', 'd', 'e', 'none'] })).json.found;
    expect(found.map((one) => one.job?.payload)).toEqual([...jobs.map(({ payload }) => payload), undefined]);
    expect(found[0]!.job).toMatchObject({ state: 'scheduled', options: { attempts: 2 }, attempt: 0, attempts: [] });
    const [stored] = await server.store.get('plain', ['c']);
    expect(Buffer.from(stored!.payload as Uint8Array)).toEqual(Buffer.from([0, 1, 2]));
    expect((await call('Count', { queue: 'plain' })).json.counts).toEqual({
      blocked: 0,
      scheduled: 2,
      ready: 3,
      active: 0,
      done: 0,
      dead: 0,
      cancelled: 0,
      droppedDead: 0,
    });
    expect((await call('List', { queue: 'plain', state: 'ready' })).json.jobs).toHaveLength(3);
    expect((await call('List', { queue: 'plain', state: 'STATE_READY' })).json.jobs).toHaveLength(3);
  });

  it('keeps every digit of what other interfaces have stored, and refuses what it could not keep', async () => {
    const json = '{"id":12345678901234567890,"e":1e400,"\\u0000":"\\"x:0\\""}';
    await server.store.add('digits', [{ id: 'd', payload: json, priority: 0, spec: DEFAULT_SPEC }]);
    expect((await call('Get', { queue: 'digits', ids: ['d'] })).text).toContain(`"payload":${json}`);
    for (const number of ['12345678901234567890', '1e400', '-9007199254740993']) {
      const refused = await call('Add', `{"queue":"digits","jobs":[{"payload":{"a":[{"b":${number}}]}}]}`);
      expect(refused).toMatchObject({ status: 400, json: { code: 'invalid_argument', croreCode: 'BAD_PAYLOAD' } });
    }
    expect((await server.store.count('digits')).ready).toBe(1);
  });

  it.each([
    ['an unknown field', { queue: 'q', jobs: [{ payload: 1, urgent: true }] }, /urgent/],
    ['a bad state', { queue: 'q', state: 'tired' }, /state|enum/i],
    ['a bad duration', { queue: 'q', jobs: [{ payload: 1, delay: 'soon' }] }, /delay/],
    ['bytes that are not base64', { queue: 'q', jobs: [{ payload: { $bytes: '!' } }] }, /base64|data/],
    ['a list where an object belongs', [], /./],
    ['no JSON', '{"queue":', /JSON/i],
    ['a deep body', `${'['.repeat(200_000)}`, /./],
    [
      'a deep payload',
      `{"queue":"q","jobs":[{"payload":${'['.repeat(5_000)}${']'.repeat(5_000)}}]}`,
      /nested too deeply/,
    ],
    ['__proto__', '{"queue":"q","__proto__":{"x":1}}', /__proto__/],
  ])('refuses %s, and adds nothing', async (_what, body, message) => {
    const refused = await call(JSON.stringify(body).includes('state') ? 'List' : 'Add', body);
    expect(refused.status).toBe(400);
    expect(refused.text).toMatch(message);
    expect((await server.store.count('q')).ready).toBe(0);
  });

  it.each(['application/json', 'APPLICATION/JSON', 'application/json; charset="utf-8"', 'application/json ; foo=bar'])(
    'understands the content type %s',
    async (type) => {
      const answer = await fetch(`${server.http}/crore.v1.Crore/Count`, {
        method: 'POST',
        headers: { 'content-type': type },
        body: '{"queue":"types"}',
      });
      expect(await answer.json()).toMatchObject({ counts: { ready: 0 } });
    },
  );

  it('explains which content type is missing', async () => {
    const url = `${server.http}/crore.v1.Crore/Count`;
    const form = await fetch(url, { method: 'POST', body: new URLSearchParams({ queue: 'q' }) });
    expect([form.status, await form.text()]).toEqual([415, expect.stringContaining('application/json')]);
  });

  it('says what it serves, and hints at what was meant', async () => {
    const index = await (await fetch(server.http)).text();
    expect(index).toContain(`${server.http}/crore.v1.Crore/Add`);
    const named = [...index.matchAll(/^ {2}([A-Z]\w+) /gm)].map(([, name]) => name!);
    expect(named.length).toBeGreaterThan(20);
    const known = Crore.methods.map(({ name }) => name);
    expect(named.filter((name) => !known.includes(name))).toEqual([]);
    for (const [path, hint] of [
      ['/jobs', `GET ${server.http}/ lists the calls`],
      ['/crore.v1.Crore/add', 'did you mean /crore.v1.Crore/Add?'],
    ] as const) {
      const missing = await fetch(`${server.http}${path}`);
      expect([missing.status, await missing.text()]).toEqual([404, expect.stringContaining(hint)]);
    }
    const got = await fetch(`${server.http}/crore.v1.Crore/Add`);
    expect([got.status, await got.text()]).toEqual([405, expect.stringContaining('POST')]);
  });
});

describe('docs/http.md', () => {
  const page = readFileSync(new URL('../../docs/http.md', import.meta.url), 'utf8');
  const lines = [...page.matchAll(/^call (\w+) '(.*)'$/gm)].map(([, name, json]) => [name!, json!] as const);

  it('lists every call', () => {
    const unary = Crore.methods.filter(({ methodKind }) => methodKind === 'unary').map(({ name }) => name);
    expect(unary.filter((name) => !lines.some(([listed]) => listed === name))).toEqual([]);
  });

  it('has examples that work, one after the other', async () => {
    let token = '';
    let id = '';
    for (const [name, example] of lines) {
      const times = [new Date(), new Date(Date.now() + 3_600_000)].map((time) => time.toISOString());
      const body = example
        .replaceAll('TOKEN', token)
        .replaceAll('"ID"', JSON.stringify(id))
        .replaceAll('NOW', times[0]!)
        .replaceAll('LATER', times[1]!);
      const { status, text, json } = await call(name, body);
      expect(`${name} ${status} ${text}`).toContain(`${name} 200`);
      if (name === 'Claim') ({ token, id } = json.entries[0]!.lease);
      if (name === 'Settle') expect(json).toEqual({ applied: [true] });
      if (name === 'Leases') expect(json.leases).toHaveLength(1);
    }
  });
});

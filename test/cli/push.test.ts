import { describe, expect, it } from 'vitest';
import { freshSqlite } from '../support/stores.js';
import { until } from '../support/wait.js';
import { objects } from './support/crore.js';
import { type Desk, setUpDesk } from './support/setup.js';

let { line, name, queue } = {} as Desk;
setUpDesk('push', freshSqlite, (desk) => {
  ({ line, name, queue } = desk);
});

const payloads = async () => (await queue.list('ready')).jobs.map(({ payload }) => payload);

describe('crore push', () => {
  it('adds a job for each argument and prints their ids', async () => {
    const { code, out, err } = await line.run(['push', name, 'text', '{"to":"ada"}', '5', 'null', '"quoted"', '007']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const { jobs } = await queue.list('ready');
    expect(out).toBe(jobs.map(({ id }) => `${id}\n`).join(''));
    expect(jobs.map(({ payload }) => payload)).toEqual(['text', { to: 'ada' }, 5, null, 'quoted', '007']);
  });

  it('takes payloads as text with --text, and payloads that begin with a dash after --', async () => {
    expect((await line.run(['push', name, '--text', '5', '--', '-1', '--json'])).code).toBe(0);
    expect(await payloads()).toEqual(['5', '-1', '--json']);
  });

  it('keeps a number that JavaScript cannot represent as text', async () => {
    await line.run(['push', name, '12345678901234567890', '9007199254740991']);
    expect(await payloads()).toEqual(['12345678901234567890', 9007199254740991]);
  });

  it.each([
    ['{to:"ada"}', "Expected property name or '}' in JSON at position 1"],
    ['  [1,', 'Unexpected end of JSON input'],
    ['{"a":1}}', 'Unexpected non-whitespace character after JSON at position 7'],
  ])('refuses %s, which looks like JSON but is not, unless --text is given', async (broken, why) => {
    const { code, out, err } = await line.run(['push', name, 'good', broken]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/^crore: payload 2 looks like JSON but is not: .*; --text queues it as text\n$/);
    expect(err).toContain(why);
    expect((await line.run(['push', name, broken])).err).toContain('crore: the payload looks like JSON but is not');
    expect(await payloads()).toEqual([]);
    expect((await line.run(['push', name, '--text', broken])).code).toBe(0);
    expect(await payloads()).toEqual([broken]);
    expect((await line.run(['push', name, '--raw', broken])).out).toBe('1 pushed\n');
  });

  it('refuses JSON with a number that JavaScript cannot hold, unless --text is given', async () => {
    const { code, out, err } = await line.run(['push', name, 'good', '{"a":[{"b":12345678901234567890}]}']);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/^crore: payload 2: number 1234\d+ is too large to be kept exactly: send it as a string\n$/);
    expect((await line.run(['push', name, '1e400'])).code).toBe(2);
    expect(await payloads()).toEqual([]);
    await line.run(['push', name, '--text', '1e400']);
    await line.run(['push', name, '12345678901234567890']);
    expect(await payloads()).toEqual(['1e400', '12345678901234567890']);
  });

  it('refuses a line that looks like JSON but is not, by its number, and says what was added before', async () => {
    const once = await line.run(['push', name], { input: 'a\n\n{"b":2}\n{c:3}\nd\n' });
    expect({ code: once.code, out: once.out }).toEqual({ code: 2, out: '' });
    expect(once.err).toMatch(
      /^crore: line 4 of the input looks like JSON but is not: .*as text \(nothing was added\)\n$/,
    );
    expect(await payloads()).toEqual([]);
    const running = line.start(['push', name], { open: true });
    running.write('a\n\nb\n');
    await until('both to be added', () => running.written.out.split('\n').length === 3);
    running.write('c\n[oops\n');
    const { code, err } = await running.ended;
    expect(code).toBe(2);
    expect(err).toContain('line 5 of the input looks like JSON but is not');
    expect(err).toContain('(2 jobs were added before, from the lines up to 3)');
    expect(await payloads()).toEqual(['a', 'b']);
  });

  it('adds a job for each line of stdin, skips empty lines and keeps bytes that are not UTF-8', async () => {
    const input = Buffer.concat([Buffer.from('a\n\n{"b":2}\nä\n'), Buffer.from([0xff, 0xfe, 10]), Buffer.from('last')]);
    const { code, out } = await line.run(['push', name, '--json'], { input });
    expect(code).toBe(0);
    expect(objects(out).map(({ outcome }) => outcome)).toEqual(Array(5).fill('created'));
    const all = await payloads();
    expect(all.map((each) => (each instanceof Uint8Array ? [...each] : each))).toEqual([
      'a',
      { b: 2 },
      'ä',
      [0xff, 0xfe],
      'last',
    ]);
  });

  it('pushes each line as soon as it arrives, and continues when nobody reads the ids', async () => {
    const running = line.start(['push', name], { open: true });
    running.write('first\n');
    await running.says('\n');
    expect(await payloads()).toEqual(['first']);
    running.closeOutput();
    running.write('second\nthird\n');
    running.endInput();
    expect(await running.ended).toMatchObject({ code: 0, err: '' });
    expect(await payloads()).toEqual(['first', 'second', 'third']);
  });

  it('applies the job options that are given', async () => {
    const at = new Date(Date.now() + 3_600_000);
    const options = ['--priority', '-5', '--attempts', '2', '--reserve', '30s', '--backoff', '7s', '--id', 'mine'];
    await line.run(['push', name, 'x', '--at', at.toISOString(), ...options]);
    expect(await queue.get('mine')).toMatchObject({
      state: 'scheduled',
      priority: -5,
      maxAttempts: 2,
      runAt: at.getTime(),
    });
    const before = Date.now();
    const [{ id }] = (await line.json('push', name, 'y', '--delay', '2h')) as [{ id: string }];
    expect((await queue.get(id))!.runAt).toBeGreaterThanOrEqual(before + 7_200_000);
  });

  it('reports a job that already existed, by id or by key', async () => {
    expect((await line.run(['push', name, 'x', '--id', 'same'])).out).toBe('same\n');
    expect((await line.run(['push', name, 'y', '--id', 'same'])).out).toBe('same  duplicate\n');
    const [first] = await line.json('push', name, 'x', '--unique', 'key');
    expect(await line.json('push', name, 'y', '--unique', 'key')).toEqual([{ ...first, outcome: 'duplicate' }]);
  });

  it('is refused by a full queue with exit code 1, and every payload is accounted for', async () => {
    const { code, out, err } = await line.run(['push', name, 'a', 'b', 'c', '--limit', '2', '--json']);
    expect(code).toBe(1);
    expect(err).toBe(`crore: queue '${name}' is full: 1 not added\n`);
    expect(objects(out).map(({ outcome }) => outcome)).toEqual(['created', 'created', 'full']);
    expect(await payloads()).toEqual(['a', 'b']);
  });

  it('pushes raw tasks as exact bytes, without records', async () => {
    const input = Buffer.concat([Buffer.from('one\n'), Buffer.from([0, 1, 0xff, 10]), Buffer.from('{"a":1}\n')]);
    expect((await line.run(['push', name, '--raw'], { input })).out).toBe('3 pushed\n');
    expect(await payloads()).toEqual([]);
    expect(await queue.count()).toMatchObject({ ready: 3 });
    const tasks: number[][] = [];
    const worker = queue.work((job) => void tasks.push([...(job.payload as Uint8Array)]));
    await expect.poll(() => tasks.length).toBe(3);
    await worker.close();
    expect(tasks).toEqual([[...Buffer.from('one')], [0, 1, 0xff], [...Buffer.from('{"a":1}')]]);
    const full = await line.run(['push', name, '--raw', 'a', 'b', '--limit', '1', '--json']);
    expect([full.code, objects(full.out)]).toEqual([1, [{ queue: name, pushed: 0, refused: 2 }]]);
  });

  it('refuses a line that is too long, by its number, before it is read completely', async () => {
    const { code, err } = await line.run(['push', name], { input: Buffer.from(`ok\n${'x'.repeat(3_000_000)}`) });
    expect(code).toBe(2);
    expect(err).toBe('crore: line 2 of the input has more than 1048576 bytes\n');
    const raw = await line.run(['push', name, '--raw'], { input: `ok\n${'x'.repeat(3_000_000)}` });
    expect([raw.code, raw.out]).toEqual([2, '1 pushed\n']);
  });
});

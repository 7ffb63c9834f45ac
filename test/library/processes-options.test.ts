import { afterAll, beforeAll, describe, expect, expectTypeOf, it } from 'vitest';
import { type Crore, type Handler, open } from '../../dist/index.js';

const module = (name: string) => new URL(`../support/programs/${name}.mjs`, import.meta.url);
const HANDLER = module('handler');

describe('work with a module', () => {
  let crore: Crore;
  beforeAll(async () => {
    crore = await open('sqlite::memory:');
  });
  afterAll(() => crore.close());

  it.each<[string, unknown, object | undefined, string]>([
    ['a path', './handler.js', undefined, "new URL('./handler.js', import.meta.url)"],
    ['a file that does not exist', module('nowhere'), {}, 'nowhere.mjs does not exist'],
    ['a URL of another kind', new URL('https://example.com/x.js'), {}, 'URL of a file'],
    ['both kinds', HANDLER, { processes: 1, threads: 1 }, 'not both'],
    ['no processes', HANDLER, { processes: 0 }, 'processes'],
    ['half a thread', HANDLER, { threads: 1.5 }, 'threads'],
    ['concurrency as well', HANDLER, { threads: 2, concurrency: 2 }, "leave out 'concurrency'"],
    ['too little memory', HANDLER, { maxMemory: 1_000 }, 'at least 16 MB'],
    ['a memory that is no size', HANDLER, { maxMemory: 'lots' }, "'lots'"],
    ['an unknown option', HANDLER, { proceses: 2 }, "'proceses'"],
    ['processes for a function', () => {}, { processes: 2 }, "'processes' needs the URL"],
    ['a memory for a function', () => {}, { maxMemory: '512mb' }, "'maxMemory' needs the URL"],
  ])('refuses %s at once', (_what, handler, options, word) => {
    expect(() => crore.queue('bad').work(handler as never, options as never)).toThrowError(
      expect.objectContaining({ code: 'BAD_OPTION', message: expect.stringContaining(word) }),
    );
  });

  it('refuses a bad duration', () => {
    expect(() => crore.queue('bad').work(HANDLER, { killAfter: 'soon' })).toThrowError(
      expect.objectContaining({ code: 'BAD_DURATION' }),
    );
  });

  it('has as many processes as concurrency says, if nothing else does', async () => {
    const queue = crore.queue('default');
    const worker = queue.work(HANDLER, { concurrency: 3 });
    await worker.ready();
    const [joined] = await queue.workers();
    expect(JSON.parse(joined!.info)).toMatchObject({ concurrency: 3 });
    await worker.close();
  });

  it('has types', () => {
    const queue = crore.queue<string, number>('types');
    expectTypeOf(queue.work).toBeCallableWith(async () => 5, { concurrency: 2 });
    expectTypeOf(queue.work).toBeCallableWith(HANDLER, { threads: 2, grace: '1s' });
    const handler: Handler<string, number> = (job) => job.payload.length;
    expectTypeOf(handler).toBeCallableWith(expect.anything());
  });
});

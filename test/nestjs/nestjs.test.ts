import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type DynamicModule, type INestApplicationContext, Inject, Injectable, Module, Scope } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { afterEach, describe, expect, expectTypeOf, it } from 'vitest';
import { type ActiveJob, type Codec, type Crore, CroreError, Fatal, type Queue } from '../../dist/index.js';
import {
  CRORE,
  CroreModule,
  InjectCrore,
  InjectQueue,
  type JobProcessor,
  Processor,
  queueToken,
} from '../../dist/nestjs/index.js';
import { deferred } from '../support/wait.js';

type Imports = NonNullable<DynamicModule['imports']>;
type Providers = NonNullable<DynamicModule['providers']>;

let app: INestApplicationContext | undefined;
afterEach(async () => {
  await app?.close();
  app = undefined;
});

const memory = () => CroreModule.forRoot({ url: 'sqlite::memory:', logger: false });

/** An application of one module. Decorators are called as functions: the tests are compiled without their syntax. */
async function start(imports: Imports, providers: Providers = []): Promise<INestApplicationContext> {
  class App {}
  Module({ imports, providers })(App);
  app = await NestFactory.createApplicationContext(App, { logger: false, abortOnError: false });
  return app;
}

/** A class whose jobs are handled by this function. */
function processorOf<P>(queue: string, process: (job: ActiveJob<P>) => unknown, options = {}) {
  class Handling {
    process(job: ActiveJob<P>) {
      return process(job);
    }
  }
  Processor(queue, options)(Handling);
  return Handling;
}

describe('crore/nestjs', () => {
  it('injects the connection and queues, and processes jobs with a provider that has dependencies', async () => {
    class Greeter {
      greet = (name: string) => `hello ${name}`;
    }
    class Mails implements JobProcessor<string, string> {
      constructor(
        readonly greeter: Greeter,
        readonly queue: Queue,
      ) {}
      process = async (job: ActiveJob<string>) => `${this.greeter.greet(job.payload)} of ${this.queue.name}`;
    }
    Processor('mails', { name: 'postman' })(Mails);
    Inject(Greeter)(Mails, undefined, 0);
    InjectQueue('mails')(Mails, undefined, 1);
    class Service {
      constructor(
        readonly crore: Crore,
        readonly queue: Queue<string, string>,
      ) {}
    }
    Injectable()(Service);
    InjectCrore()(Service, undefined, 0);
    InjectQueue('mails')(Service, undefined, 1);

    await start([memory(), CroreModule.registerQueue('mails', 'images')], [Greeter, Service, Mails]);
    const { crore, queue } = app!.get(Service);
    expect(await (await queue.add('ada')).finished()).toBe('hello ada of mails');
    expect((await queue.workers())[0]!.id).toMatch(/^postman/);
    expect(app!.get<Queue>(queueToken('images')).name).toBe('images');
    expect(crore).toBe(app!.get(CRORE));
  });

  it('forRootAsync waits for a factory with injected providers of its imports', async () => {
    class Config {}
    class Settings {
      url = 'sqlite::memory:';
    }
    Module({ providers: [Settings], exports: [Settings] })(Config);
    const root = CroreModule.forRootAsync({
      imports: [Config],
      inject: [Settings],
      useFactory: async ({ url }: Settings) => ({ url, maxPayload: 10 }),
    });
    await start([root, CroreModule.registerQueue('mails')]);
    const queue = app!.get<Queue>(queueToken('mails'));
    await expect(queue.add('more than ten bytes')).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' });
  });

  it('a queue that several modules register is one object, with its schema and codec', async () => {
    const codec: Codec = { encode: (bytes) => bytes.toReversed(), decode: (bytes) => bytes.toReversed() };
    const mails = { name: 'mails', codec, limits: { count: 100 } };
    class Other {}
    Module({ imports: [CroreModule.registerQueue({ ...mails, limits: { count: 100 } })] })(Other);
    const upper = processorOf<string>('mails', (job) => job.payload.toUpperCase());
    await start([memory(), CroreModule.registerQueue(mails), Other], [upper]);
    const handle = await app!.get<Queue<string, string>>(queueToken('mails')).add('ada');
    expect(await handle.finished()).toBe('ADA');
    const stored = await app!.get<Crore>(CRORE).queue('mails').get(handle.id);
    expect(stored!.payload).toBeInstanceOf(Uint8Array);
  });

  it('an error in a processor fails the job as usual', async () => {
    const failing = processorOf('mails', (job) => {
      if (job.attempt === 1) throw new Error('try again');
      throw new Fatal('no use');
    }, { backoff: () => 1 }); // biome-ignore format: the handler is what matters
    await start([memory(), CroreModule.registerQueue('mails')], [failing]);
    const handle = await app!.get<Queue>(queueToken('mails')).add('x');
    await expect(handle.finished()).rejects.toMatchObject({ code: 'JOB_DEAD', message: /no use/ });
    expect((await handle.get())!.attempts.map(({ error }) => error!.message)).toEqual(['try again', 'no use']);
  });

  it('a processor may come from a factory, and have a second token', async () => {
    const type = processorOf('mails', () => 'ok');
    const providers = [
      { provide: 'made', useFactory: () => new type() },
      { provide: 'alias', useExisting: 'made' },
    ];
    await start([memory(), CroreModule.registerQueue('mails')], providers);
    const queue = app!.get<Queue>(queueToken('mails'));
    expect(await (await queue.add('x')).finished()).toBe('ok');
    expect(await queue.workers()).toHaveLength(1);
  });

  class First extends processorOf('mails', () => {}) {}
  Processor('mails')(First);
  class Second extends processorOf('mails', () => {}) {}
  Processor('mails')(Second);
  class Idle {}
  Processor('mails')(Idle as never);
  class Scoped extends processorOf('mails', () => {}) {}
  Processor('mails')(Scoped);
  Injectable({ scope: Scope.REQUEST })(Scoped);
  class Transient extends processorOf('mails', () => {}) {}
  Processor('mails')(Transient);
  Injectable({ scope: Scope.TRANSIENT })(Transient);
  class Wrong extends processorOf('mails', () => {}) {}
  Processor('mails', { concurency: 5 } as never)(Wrong);
  const mails = () => CroreModule.registerQueue('mails');
  const MISTAKES: [string, () => Imports, Providers, string][] = [
    ['an unregistered queue', () => [], [First], "First is the processor of queue 'mails', which is not registered"],
    ['two processors', () => [mails()], [First, Second], "queue 'mails' has two processors: First and Second"],
    ['no method process', () => [mails()], [Idle], 'Idle is a processor: it needs a method process(job)'],
    ['a request-scoped one', () => [mails()], [Scoped], 'Scoped is a processor: it must not be transient or request'],
    ['a transient one', () => [mails()], [Transient], 'Transient is a processor: it must not be transient'],
    ['an unknown option', () => [mails()], [Wrong], "unknown option 'concurency'"],
    [
      'two sets of options',
      () => [mails(), CroreModule.registerQueue({ name: 'mails', limits: {} })],
      [],
      'different options',
    ],
  ];
  it.each(MISTAKES)('refuses to start with %s', async (_what, imports, providers, words) => {
    const error = await start([memory(), ...imports()], providers).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CroreError);
    expect(error).toMatchObject({ code: 'BAD_OPTION', message: expect.stringContaining(words) });
  });

  it('closes the connection of an application that does not start', async () => {
    const seen: Crore[] = [];
    const spy = { provide: 'spy', useFactory: (crore: Crore) => seen.push(crore), inject: [CRORE] };
    await expect(start([memory()], [First, spy])).rejects.toThrow('not registered');
    await expect(seen[0]!.queue('mails').add('x')).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('closes workers first: a job in hand is told, and other providers can still add jobs; then the connection', async () => {
    const begun = deferred();
    const events: string[] = [];
    const slow = processorOf('mails', async (job) => {
      begun.resolve();
      await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
      events.push((job.signal.reason as CroreError).code);
    });
    class Late {
      constructor(readonly queue: Queue) {}
      async beforeApplicationShutdown() {
        events.push((await this.queue.add('late')).outcome, (await this.queue.get('first'))!.state);
      }
    }
    InjectQueue('mails')(Late, undefined, 0);
    await start([memory(), CroreModule.registerQueue('mails')], [slow, Late]);
    const queue = app!.get<Queue>(queueToken('mails'));
    await queue.add('x', { id: 'first' });
    await begun.promise;
    await app!.close();
    app = undefined;
    expect(events).toEqual(['CLOSED', 'created', 'done']);
    await expect(queue.add('x')).rejects.toMatchObject({ code: 'CLOSED' });
  });

  it('the decorator takes only classes with a method process', () => {
    const decorate = Processor('mails');
    expectTypeOf(decorate).toBeCallableWith(First);
    // @ts-expect-error: it has no method process
    expectTypeOf(decorate).toBeCallableWith(Date);
  });

  it('is the only part of the package that imports Nest', () => {
    const src = fileURLToPath(new URL('../../src/', import.meta.url));
    const importing = readdirSync(src, { recursive: true })
      .map(String)
      .filter(
        (name) => name.endsWith('.ts') && /from '(@nestjs|\S*nestjs\/)/.test(readFileSync(join(src, name), 'utf8')),
      );
    expect(importing.length).toBeGreaterThan(0);
    expect(importing.filter((name) => !name.startsWith('nestjs/'))).toEqual([]);
  });
});

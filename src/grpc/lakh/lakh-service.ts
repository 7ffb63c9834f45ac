import { report } from '../../engine/tokenless-report.js';
import type { ServerContext } from '../context.js';
import type { Call } from '../http2/call.js';
import { frame } from '../http2/frames.js';
import { statusOf } from '../status.js';
import { Consumer } from './consumer.js';
import { deadJobsMessage } from './dead-jobs.js';
import { Dispatcher } from './dispatcher.js';
import { jobNames } from './job-names.js';
import { NewJobReader } from './new-jobs.js';
import { Producer } from './producer.js';
import type { WireResult } from './reader.js';

const WORK = '/lakh.Lakh/Work';
const JOIN = '/lakh.Lakh/Join';
const GET_DEAD_JOBS = '/lakh.Lakh/GetDeadJobs';
/** How many reports about other names may be in flight; more are dropped, as the protocol allows for any report. */
const MOST_FOREIGN = 1_000;

/** The calls of the lakh protocol, with our own framing. */
export class LakhService {
  readonly #dispatchers = new Map<string, Dispatcher>();
  readonly #producers = new Set<Producer>();
  readonly #consumers = new Set<Consumer>();
  readonly #closing = new Set<Promise<void>>();
  readonly #newJobs: NewJobReader;
  #foreigners = 0;

  constructor(private readonly context: ServerContext) {
    this.#newJobs = new NewJobReader(context.lakh);
  }

  handles(path: string): boolean {
    return path === WORK || path === JOIN || path === GET_DEAD_JOBS;
  }

  handle(path: string, call: Call): void {
    try {
      if (path === WORK) this.#work(call);
      else if (path === JOIN) this.#join(call);
      else void this.#getDeadJobs(call);
    } catch (error) {
      const { status, message, code } = statusOf(error);
      call.end(status, message, code);
    }
  }

  get busy(): boolean {
    return this.#producers.size > 0 || this.#consumers.size > 0;
  }

  /** Delivers nothing more, and lets each stream end as soon as it holds no jobs. */
  drain(): void {
    for (const dispatcher of this.#dispatchers.values()) dispatcher.stop();
    for (const consumer of this.#consumers) consumer.drain();
  }

  /** Ends the remaining streams. */
  cut(): void {
    for (const producer of this.#producers) producer.cut();
    for (const consumer of this.#consumers) consumer.cut();
  }

  async close(): Promise<void> {
    for (const dispatcher of this.#dispatchers.values()) this.#closing.add(dispatcher.close());
    await Promise.all(this.#closing);
  }

  #work(call: Call): void {
    const producer = new Producer(this.context, this.#newJobs, call);
    this.#producers.add(producer);
    call.stream.once('close', () => this.#producers.delete(producer));
  }

  /** The request is an Empty, so its content does not matter. */
  async #getDeadJobs(call: Call): Promise<void> {
    call.stream.resume();
    try {
      const message = await deadJobsMessage(this.context.engine);
      if (call.ended) return;
      call.send(frame(message));
      call.end('OK');
    } catch (error) {
      const { status, message, code } = statusOf(error);
      if (status === 'INTERNAL') this.context.log.error({ err: error }, 'dead jobs could not be listed');
      call.end(status, message, code);
    }
  }

  #join(call: Call): void {
    const names = jobNames(call.rawHeaders, this.context.limits.names);
    const dispatchers = new Map([...names].map((name) => [name, this.#dispatcher(name)]));
    const consumer = new Consumer(this.context, call, dispatchers, {
      left: (gone) => this.#left(gone, dispatchers),
      foreign: (result) => void this.#foreign(result),
    });
    this.#consumers.add(consumer);
  }

  #dispatcher(name: string): Dispatcher {
    const known = this.#dispatchers.get(name);
    if (known) return known;
    this.context.keepSwept(name);
    const dispatcher = new Dispatcher(this.context, name);
    this.#dispatchers.set(name, dispatcher);
    return dispatcher;
  }

  #left(consumer: Consumer, dispatchers: ReadonlyMap<string, Dispatcher>): void {
    this.#consumers.delete(consumer);
    for (const [name, dispatcher] of dispatchers) {
      if (!dispatcher.idle || this.#dispatchers.get(name) !== dispatcher) continue;
      this.#dispatchers.delete(name);
      const closing = dispatcher.close().catch((error) => {
        this.context.log.error({ err: error, queue: name }, 'the queue could not be left');
      });
      this.#closing.add(closing);
      void closing.finally(() => this.#closing.delete(closing));
    }
  }

  /** The first report counts, even from a worker that no longer offers the name; but no report creates a queue. */
  async #foreign({ id, name, ok }: WireResult): Promise<void> {
    const { engine, log } = this.context;
    if (this.#foreigners >= MOST_FOREIGN) return;
    this.#foreigners += 1;
    try {
      const [job] = name === '' || id === '' ? [] : await engine.store.get(name, [id]);
      if (job) await report(engine, name, [{ id, ok }]);
    } catch (error) {
      log.warn({ err: error, queue: name }, 'a report could not be stored');
    } finally {
      this.#foreigners -= 1;
    }
  }
}

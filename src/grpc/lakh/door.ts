import { report } from '../../engine/report.js';
import type { Call } from '../call.js';
import type { ServerContext } from '../context.js';
import { jobNames } from '../names.js';
import { statusOf } from '../status.js';
import { Feeder } from './feeder.js';
import { Intake } from './intake.js';
import { Consumer } from './join.js';
import type { WireResult } from './reader.js';
import { Producer } from './work.js';

const WORK = '/lakh.Lakh/Work';
const JOIN = '/lakh.Lakh/Join';
/** Reports about other names that may be on their way; what comes beyond is dropped, as the protocol allows for any report. */
const MOST_FOREIGN = 1_000;

/** The hot streams of the lakh protocol, on our own framing. */
export class LakhDoor {
  readonly #feeders = new Map<string, Feeder>();
  readonly #producers = new Set<Producer>();
  readonly #consumers = new Set<Consumer>();
  readonly #closing = new Set<Promise<void>>();
  readonly #intake: Intake;
  #foreigners = 0;

  constructor(private readonly context: ServerContext) {
    this.#intake = new Intake(context.lakh);
  }

  handles(path: string): boolean {
    return path === WORK || path === JOIN;
  }

  handle(path: string, call: Call): void {
    try {
      if (path === WORK) this.#work(call);
      else this.#join(call);
    } catch (error) {
      const { status, message, code } = statusOf(error);
      call.end(status, message, code);
    }
  }

  get busy(): boolean {
    return this.#producers.size > 0 || this.#consumers.size > 0;
  }

  /** Hands out nothing more and lets streams end as soon as nothing of theirs is in hand. */
  drain(): void {
    for (const feeder of this.#feeders.values()) feeder.stop();
    for (const consumer of this.#consumers) consumer.drain();
  }

  /** Ends what is left. */
  cut(): void {
    for (const producer of this.#producers) producer.cut();
    for (const consumer of this.#consumers) consumer.cut();
  }

  async close(): Promise<void> {
    for (const feeder of this.#feeders.values()) this.#closing.add(feeder.close());
    await Promise.all(this.#closing);
  }

  #work(call: Call): void {
    const producer = new Producer(this.context, this.#intake, call);
    this.#producers.add(producer);
    call.stream.once('close', () => this.#producers.delete(producer));
  }

  #join(call: Call): void {
    const names = jobNames(call.rawHeaders, this.context.limits.names);
    const feeders = new Map([...names].map((name) => [name, this.#feeder(name)]));
    const consumer = new Consumer(this.context, call, feeders, {
      left: (gone) => this.#left(gone, feeders),
      foreign: (result) => void this.#foreign(result),
    });
    this.#consumers.add(consumer);
  }

  #feeder(name: string): Feeder {
    const known = this.#feeders.get(name);
    if (known) return known;
    this.context.tend(name);
    const feeder = new Feeder(this.context, name);
    this.#feeders.set(name, feeder);
    return feeder;
  }

  #left(consumer: Consumer, feeders: ReadonlyMap<string, Feeder>): void {
    this.#consumers.delete(consumer);
    for (const [name, feeder] of feeders) {
      if (!feeder.idle || this.#feeders.get(name) !== feeder) continue;
      this.#feeders.delete(name);
      const closing = feeder.close().catch((error) => {
        this.context.log.error({ err: error, queue: name }, 'the queue could not be left');
      });
      this.#closing.add(closing);
      void closing.finally(() => this.#closing.delete(closing));
    }
  }

  /** Whoever reports first counts, also one that no longer offers the name; but no report brings a queue into being. */
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

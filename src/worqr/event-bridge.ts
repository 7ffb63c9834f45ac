import type { EventEmitter } from 'node:events';
import { checkName } from '../engine/check.js';
import type { CompletedTask, TaskEvent } from '../store/raw-store.js';
import { workerOf } from './names.js';
import type { StoreConnection } from './store-connection.js';
import { Subscriptions } from './subscriptions.js';
import { asBuffer, fromBytes } from './tasks.js';

export interface EventBridgeSetup {
  emitter: EventEmitter;
  link: StoreConnection;
  timeout: number;
  binary: boolean;
  isWorking: (queue: string) => boolean;
  /** Something may wait in a queue that is worked on. */
  look: (queue: string) => void;
}

/** Events that are no queue's. */
const OWN_EVENTS = new Set(['error', 'debug', 'newListener', 'removeListener']);

/** Turns event of the store into events of an instance: of the queues that it has listeners for, or works on. */
export class EventBridge {
  readonly #setup: EventBridgeSetup;
  readonly #event: Subscriptions;
  /** Only for listeners: whoever just works on a queue need not hear of every task that ends. */
  readonly #ends: Subscriptions;

  constructor(setup: EventBridgeSetup) {
    this.#setup = setup;
    const hear = (queue: string, event: TaskEvent) => this.#onSignal(queue, event);
    const { link, timeout } = setup;
    this.#event = new Subscriptions('news', link, timeout, hear, (queue) => this.#isWanted(queue));
    const hearEnds = (queue: string, event: TaskEvent) => event.type === 'done' && hear(queue, event);
    this.#ends = new Subscriptions('ends', link, timeout, hearEnds, (queue) => this.#isHeard(queue));
    setup.emitter.on('newListener', (name) => this.#listenTo(name));
    setup.emitter.on('removeListener', (name) => this.release(name));
  }

  /** Listens to a queue; resolves once nothing more can be missed. */
  open(queue: string): Promise<void> {
    return this.#event.open(queue);
  }

  /** Resolves when a subscription that is on its way stands; undefined when none is. */
  settled(queue: string): Promise<void> | undefined {
    return this.#event.settled(queue) ?? this.#ends.settled(queue);
  }

  /** Listens no longer, unless somebody still wants it. */
  release(name: string | symbol): void {
    if (typeof name !== 'string') return;
    if (!this.#isHeard(name)) this.#ends.close(name);
    if (!this.#isWanted(name)) this.#event.close(name);
  }

  close(): void {
    this.#event.closeAll();
    this.#ends.closeAll();
  }

  /** Whoever does not work on a queue may not dequeue, so it is not asked to. */
  work(queue: string, count: number): void {
    if (this.#setup.isWorking(queue)) this.#tell(queue, 'work', String(count));
  }

  trouble(error: Error, what: string): void {
    const { emitter } = this.#setup;
    if (emitter.listenerCount('error') === 0) {
      process.stderr.write(`worqr: ${what}: ${error.message}\n`);
      return;
    }
    try {
      emitter.emit('error', error);
    } catch (thrown) {
      process.stderr.write(`worqr: error listener: ${(thrown as Error).message}\n`);
    }
  }

  #isHeard(queue: string): boolean {
    return this.#setup.emitter.listenerCount(queue) > 0;
  }

  #isWanted(queue: string): boolean {
    return this.#isHeard(queue) || this.#setup.isWorking(queue);
  }

  #listenTo(name: string | symbol): void {
    if (typeof name !== 'string' || OWN_EVENTS.has(name) || this.#setup.link.closed) return;
    try {
      checkName(name, 'queue name');
      void this.#event.open(name);
      void this.#ends.open(name);
    } catch {
      // no queue can have this name
    }
  }

  #onSignal(queue: string, event: TaskEvent): void {
    const { look, isWorking } = this.#setup;
    switch (event.type) {
      case 'work':
        if (event.count !== undefined) this.work(queue, event.count);
        else if (isWorking(queue)) look(queue);
        return;
      case 'done':
        for (const end of event.ends) this.#tell(queue, 'done', this.#doneMessage(end));
        return;
      case 'cancel':
        this.#tell(queue, 'cancel', fromBytes(event.task, this.#setup.binary));
        return;
      case 'delete':
        this.#tell(queue, 'delete', '');
        return;
      case 'reset':
        if (isWorking(queue)) look(queue);
        return;
    }
  }

  /** Bytes that may be no text stand there in base64. */
  #doneMessage({ worker, task, result }: CompletedTask): string {
    const shown = asBuffer(task).toString(this.#setup.binary ? 'base64' : 'utf8');
    const head = JSON.stringify({ workerId: workerOf(worker), task: shown });
    return result === undefined ? head : `${head.slice(0, -1)},"result":${result}}`;
  }

  /** A listener that throws must not take the connection down with it. */
  #tell(queue: string, type: string, message: string | Buffer): void {
    const { emitter } = this.#setup;
    if (emitter.listenerCount(queue) === 0) return;
    try {
      emitter.emit(queue, type, message);
    } catch (error) {
      this.trouble(error as Error, `listener of queue '${queue}'`);
    }
  }
}

import type { EventEmitter } from 'node:events';
import { checkName } from '../engine/input/check.js';
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
  /** Tasks may wait in a queue that this instance works on. */
  look: (queue: string) => void;
}

/** Events that do not belong to a queue. */
const OWN_EVENTS = new Set(['error', 'debug', 'newListener', 'removeListener']);

/** Turns task events of the store into events of an instance, for the queues that it has listeners for or works on. */
export class EventBridge {
  readonly #setup: EventBridgeSetup;
  readonly #event: Subscriptions;
  /** Only for listeners: an instance that just works on a queue does not need an event for every finished task. */
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

  /** Subscribes to a queue; resolves once no further event can be missed. */
  open(queue: string): Promise<void> {
    return this.#event.open(queue);
  }

  /** Resolves when a pending subscription is active; undefined if none is pending. */
  settled(queue: string): Promise<void> | undefined {
    return this.#event.settled(queue) ?? this.#ends.settled(queue);
  }

  /** Unsubscribes, unless the subscription is still needed. */
  release(name: string | symbol): void {
    if (typeof name !== 'string') return;
    if (!this.#isHeard(name)) this.#ends.close(name);
    if (!this.#isWanted(name)) this.#event.close(name);
  }

  close(): void {
    this.#event.closeAll();
    this.#ends.closeAll();
  }

  /** Emits `work` only if this instance works on the queue, as it could not dequeue otherwise. */
  work(queue: string, count: number): void {
    if (this.#setup.isWorking(queue)) this.#notify(queue, 'work', String(count));
  }

  reportError(error: Error, what: string): void {
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
        for (const end of event.ends) this.#notify(queue, 'done', this.#doneMessage(end));
        return;
      case 'cancel':
        this.#notify(queue, 'cancel', fromBytes(event.task, this.#setup.binary));
        return;
      case 'delete':
        this.#notify(queue, 'delete', '');
        return;
      case 'reset':
        if (isWorking(queue)) look(queue);
        return;
    }
  }

  /** Tasks that may not be valid text are encoded in base64. */
  #doneMessage({ worker, task, result }: CompletedTask): string {
    const shown = asBuffer(task).toString(this.#setup.binary ? 'base64' : 'utf8');
    const head = JSON.stringify({ workerId: workerOf(worker), task: shown });
    return result === undefined ? head : `${head.slice(0, -1)},"result":${result}}`;
  }

  /** An error thrown by a listener must not break the connection. */
  #notify(queue: string, type: string, message: string | Buffer): void {
    const { emitter } = this.#setup;
    if (emitter.listenerCount(queue) === 0) return;
    try {
      emitter.emit(queue, type, message);
    } catch (error) {
      this.reportError(error as Error, `listener of queue '${queue}'`);
    }
  }
}

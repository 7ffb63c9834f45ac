import { type Executor, limitTime, type NodeOutcome, type NodeTask, stopTask } from '../executors/executor.js';
import type { RemoteExecutor } from '../executors/remote-executor.js';
import type { Graph } from '../graph/graph.js';
import { CANCELLED, DONE, FAILED, isEnd, type NodeEnd, type SKIPPED, STATE_NAMES } from '../graph/node-spec.js';
import type { Cache } from '../journal/cache.js';
import type { Journal } from '../journal/journal.js';
import type { Watcher } from '../report/watcher.js';
import { now, uptime } from './clock.js';
import { CompletionLog, endOf, secondsOf } from './completion-log.js';
import { MapItems } from './map-items.js';
import { NodeScheduler } from './node-scheduler.js';
import { checkValue, needsOf } from './node-values.js';
import { Retries } from './retries.js';

export interface RunSetup {
  graph: Graph;
  weights: Float64Array;
  /** Number of slots in this process. */
  slots: number;
  journal: Journal;
  /** Results must outlive this process, so they must be JSON. */
  durable: boolean;
  executors: Record<'shell' | 'function' | 'queue', Executor>;
  remote?: RemoteExecutor;
  cache?: Cache;
  keepGoing: boolean;
  watchers: readonly Watcher[];
  /** Completions of an earlier run that are still valid. */
  restored?: ReadonlyMap<string, NodeEnd>;
  /** Runs only these nodes. */
  only?: ReadonlySet<number>;
  random?: () => number;
}

/** Most completions in one journal write. */
const BATCH = 1_000;
/** How long the run may start nodes in a row before it yields to the event loop, in milliseconds. */
const SLICE = 5;
/** Its `then` is a microtask that costs less than `queueMicrotask`. */
const RESOLVED = Promise.resolve();

/** One run of a flow, from the first ready node until every node has ended. */
export class Run {
  readonly graph: Graph;
  readonly scheduler: NodeScheduler;
  readonly values = new Map<number, unknown>();
  readonly running = new Set<NodeTask>();
  readonly counts = { done: 0, failed: 0, skipped: 0, cancelled: 0, cached: 0 };
  readonly startedAt = now();
  readonly attempts: Uint16Array;
  /** Error messages of failed nodes. */
  readonly errors = new Map<number, string>();
  readonly #setup: RunSetup;
  readonly #parts = new Map<number, MapItems>();
  readonly #items = { total: 0, closed: 0, restored: 0 };
  readonly #retries: Retries;
  readonly #ends: CompletionLog;
  #pumping = false;
  #scheduled = false;
  #halted: string | undefined;
  readonly #pumpNow = (): void => {
    this.#scheduled = false;
    this.#pump();
  };
  #finish!: (error?: Error) => void;
  readonly #finished: Promise<void>;

  constructor(setup: RunSetup) {
    this.#setup = setup;
    this.graph = setup.graph;
    this.attempts = new Uint16Array(this.graph.ids.length);
    this.scheduler = new NodeScheduler(this.graph, setup.weights, setup.slots, (node, state) =>
      this.#dropped(node, state),
    );
    this.#finished = new Promise((resolve, reject) => {
      this.#finish = (error) => (error ? reject(error) : resolve());
    });
    this.#ends = new CompletionLog(setup.journal, {
      released: (nodes) => this.#release(nodes),
      written: () => this.#pump(),
      failed: (error) => this.abort(error),
    });
    this.#retries = new Retries({
      watchers: setup.watchers,
      random: setup.random ?? Math.random,
      again: (task, uncharged) => this.#again(task, true, uncharged),
    });
    if (setup.remote) setup.remote.onRoom = () => this.#soon();
  }

  /** Why the run was stopped, if it was. */
  get halted(): string | undefined {
    return this.#halted;
  }

  get exit(): number {
    if (this.#halted !== undefined) return 130;
    return this.counts.failed + this.counts.skipped + this.counts.cancelled > 0 ? 100 : 0;
  }

  /** Items of the map nodes so far: known, ended, and how many of these ended in an earlier run. */
  get items(): { total: number; ended: number; restored: number } {
    const { total, closed, restored } = this.#items;
    let ended = closed;
    for (const { items, open } of this.#parts.values()) ended += items.length - open;
    return { total, ended, restored };
  }

  async run(): Promise<void> {
    this.#restore();
    for (const watcher of this.#setup.watchers) watcher.begin?.(this);
    this.scheduler.begin();
    this.#pump();
    await this.#finished;
  }

  /** Stops running nodes and starts no more. Nodes that did not finish run again when the flow is resumed. */
  halt(why: string): void {
    if (this.#halted !== undefined) return;
    this.#halted = why;
    this.#stop(true);
    for (const task of this.running) stopTask(task, why);
    this.#soon();
  }

  /** Ends the run with this error. */
  abort(error: Error): void {
    this.halt(error.message);
    this.#finish(error);
  }

  #restore(): void {
    const { restored, only } = this.#setup;
    for (let node = 0; node < this.graph.ids.length; node++) {
      if (only && !only.has(node)) {
        this.scheduler.settle(node, DONE);
        continue;
      }
      const end = restored?.get(this.graph.ids[node]!);
      if (end?.state !== 'done') continue;
      this.scheduler.settle(node, DONE);
      this.attempts[node] = end.attempts;
      this.counts.done++;
      if (end.value !== undefined) this.values.set(node, end.value);
      this.#setup.cache?.kept(node, end.value);
    }
  }

  /** Completions of the same event loop turn share one write and one round of starts. */
  #soon(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    void RESOLVED.then(this.#pumpNow);
  }

  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    const until = uptime() + SLICE;
    for (let turns = 1; ; turns++) {
      const node = this.#next();
      if (node && this.#ends.count < BATCH && (turns & 31 || uptime() < until)) continue;
      const more = this.#ends.flush();
      if (!more && !node) break;
      if (uptime() < until) continue;
      setImmediate(() => this.#pump());
      break;
    }
    this.#pumping = false;
    const busy = this.scheduler.open > 0 || this.running.size > 0 || this.#ends.count > 0 || this.#ends.writing;
    if (!busy) this.#finish();
  }

  /** Starts the best ready node that fits into a free slot; false when there is none. */
  #next(): boolean {
    const node = this.scheduler.next();
    if (node >= 0) {
      this.#start(node, true);
      return true;
    }
    const { remote } = this.#setup;
    if (!remote || this.scheduler.ready === 0 || remote.room <= 0) return false;
    const away = this.scheduler.nextElsewhere();
    if (away >= 0) this.#start(away, false);
    return away >= 0;
  }

  #start(node: number, here: boolean): void {
    const parts = this.#parts.get(node);
    if (parts) {
      this.#startPart(node, parts, here);
      return;
    }
    const spec = this.graph.specs[node]!;
    const attempt = ++this.attempts[node]!;
    const needs = needsOf(this.graph, this.values, node);
    const task: NodeTask = { node, id: this.graph.ids[node]!, spec, attempt, needs, here, startedAt: now() };
    const known = spec.options.cache && attempt === 1 ? this.#setup.cache?.look(node) : undefined;
    if (known) this.#over(task, { exit: 0, value: known.value, seconds: 0 }, true);
    else if (spec.map !== undefined) this.#expand(node, here);
    else this.#execute(task);
  }

  #execute(task: NodeTask): void {
    for (const watcher of this.#setup.watchers) watcher.started?.(task);
    const { executors, remote } = this.#setup;
    const { kind } = task.spec.work;
    const executor = task.here || kind === 'queue' ? executors[kind] : remote!;
    const outcome = executor.run(task);
    if (!(outcome instanceof Promise)) {
      this.#over(task, outcome, false);
      return;
    }
    this.running.add(task);
    if (!executor.keepsTime) limitTime(task);
    const late = (result: NodeOutcome) => {
      clearTimeout(task.timer);
      this.running.delete(task);
      this.#over(task, result, false);
      this.#soon();
    };
    outcome.then(late, (error: Error) => late({ exit: 1, error: error.message, fatal: true }));
  }

  /** Handles the end of an attempt: the node has finished, or waits for its next attempt. */
  #over(task: NodeTask, outcome: NodeOutcome, cached: boolean): void {
    const { node } = task;
    this.scheduler.free(node, task.here);
    if (this.#halted !== undefined && (task.stopped !== undefined || outcome.exit !== 0)) {
      this.#abandon(task);
      return;
    }
    if (outcome.returned) {
      this.#again(task, false, true);
      return;
    }
    const checked = this.#judged(task, outcome);
    if (checked.exit === 0) this.#done(task, checked, cached);
    else if (!this.#mayRetry(checked) || !this.#retries.retry(task, checked)) this.#failed(task, checked);
  }

  #judged(task: NodeTask, outcome: NodeOutcome): NodeOutcome {
    if (task.stopped !== undefined) return { ...outcome, exit: outcome.exit || 124, error: task.stopped };
    return this.#setup.durable ? checkValue(outcome) : outcome;
  }

  #done(task: NodeTask, outcome: NodeOutcome, cached: boolean): void {
    const { node } = task;
    this.#notify(task, outcome, 'done', cached);
    if (task.part !== undefined) {
      if (!cached) this.#setup.cache?.ranPart(node, task.part, task.item, outcome.value, secondsOf(task, outcome));
      this.#partEnded(node, task.part, outcome.value);
      return;
    }
    if (outcome.value !== undefined) this.values.set(node, outcome.value);
    this.counts.done++;
    if (cached) this.counts.cached++;
    else if (this.#setup.cache) this.#setup.cache.ran(node, outcome.value, secondsOf(task, outcome));
    this.scheduler.end(node, DONE);
  }

  #failed(task: NodeTask, outcome: NodeOutcome): void {
    const { node } = task;
    this.#notify(task, outcome, 'failed', false);
    if (task.part !== undefined) {
      this.#partEnded(node, task.part, undefined, `${task.id}: ${outcome.error ?? `exit ${outcome.exit}`}`);
    } else {
      this.errors.set(node, outcome.error ?? `exit ${outcome.exit}`);
      this.counts.failed++;
      this.scheduler.end(node, FAILED);
    }
    if (!this.#setup.keepGoing && !this.scheduler.stopped) this.#stop(false);
  }

  /** After a stop, only nodes whose worker crashed are started again, because nobody knows whether those failed. */
  #mayRetry(outcome: NodeOutcome): boolean {
    return outcome.crashed === true || !this.scheduler.stopped;
  }

  /** Also gives up nodes that wait for a retry. Parts of map nodes wait in the same queues. */
  #stop(everything: boolean): void {
    const waiting = this.scheduler.stop(everything).filter((node) => !this.#parts.has(node));
    for (const { node, part } of this.#retries.drop()) {
      if (part === undefined) waiting.push(node);
      else this.#parts.get(node)!.lose();
    }
    for (const node of waiting) {
      if (isEnd(this.scheduler.states[node]!)) continue;
      this.#cancelled(node);
      this.scheduler.release(node);
    }
    for (const [node, parts] of this.#parts) {
      parts.stop();
      if (parts.open === 0) this.#closeParts(node, parts);
    }
  }

  #notify(task: NodeTask, outcome: NodeOutcome, state: 'done' | 'failed', cached: boolean): void {
    const end = endOf(task, outcome, state, cached);
    this.#ends.add(end, task.part === undefined ? task.node : -1);
    for (const watcher of this.#setup.watchers) watcher.ended?.(end, outcome, task);
  }

  #release(ended: readonly number[]): void {
    for (const node of ended) if (node >= 0) this.scheduler.release(node);
  }

  #again(task: NodeTask, retry: boolean, uncharged: boolean): void {
    const { node, part } = task;
    const parts = part === undefined ? undefined : this.#parts.get(node)!;
    if (uncharged && parts) parts.attempts[part!]!--;
    else if (uncharged) this.attempts[node]!--;
    parts?.waiting.push(part!);
    this.scheduler.again(node, retry);
    this.#soon();
  }

  /** The task was stopped together with the run. It is not recorded, so that it runs again. */
  #abandon(task: NodeTask): void {
    if (task.part !== undefined) {
      const parts = this.#parts.get(task.node)!;
      parts.lose();
      if (parts.open === 0) this.#closeParts(task.node, parts);
    } else this.#cancelled(task.node);
  }

  #cancelled(node: number): void {
    this.scheduler.end(node, CANCELLED);
    this.#dropped(node, CANCELLED);
  }

  #dropped(node: number, state: typeof SKIPPED | typeof CANCELLED): void {
    const name = STATE_NAMES[state] as 'skipped' | 'cancelled';
    this.counts[name]++;
    for (const watcher of this.#setup.watchers) watcher.dropped?.(this.graph.ids[node]!, name);
  }

  #expand(node: number, here: boolean): void {
    const { ids, index, specs } = this.graph;
    const over = specs[node]!.map!;
    this.scheduler.free(node, here);
    const list = this.values.get(index.get(over)!);
    const parts = new MapItems(list, over, (part) => this.#setup.restored?.get(`${ids[node]}[${part}]`));
    this.#parts.set(node, parts);
    this.#items.total += parts.items.length;
    this.#items.restored += parts.items.length - parts.open;
    if (parts.open === 0) this.#closeParts(node, parts);
    else this.scheduler.again(node, false, parts.open);
  }

  #startPart(node: number, parts: MapItems, here: boolean): void {
    const part = parts.waiting.shift()!;
    const spec = this.graph.specs[node]!;
    const attempt = ++parts.attempts[part]!;
    const id = `${this.graph.ids[node]}[${part}]`;
    const needs = needsOf(this.graph, this.values, node);
    const item = parts.items[part];
    const task: NodeTask = { node, id, spec, attempt, needs, part, item, here, startedAt: now() };
    const known = spec.options.cache && attempt === 1 ? this.#setup.cache?.lookPart(node, part, item) : undefined;
    if (known) this.#over(task, { exit: 0, value: known.value, seconds: 0 }, true);
    else this.#execute(task);
  }

  #partEnded(node: number, part: number, value: unknown, error?: string): void {
    const parts = this.#parts.get(node)!;
    parts.ended(part, value, error);
    if (parts.open === 0) this.#closeParts(node, parts);
  }

  #closeParts(node: number, parts: MapItems): void {
    if (isEnd(this.scheduler.states[node]!)) return;
    const id = this.graph.ids[node]!;
    const spec = this.graph.specs[node]!;
    this.#parts.delete(node);
    this.#items.closed += parts.items.length;
    const task: NodeTask = { node, id, spec, attempt: 1, needs: undefined, here: false, startedAt: parts.startedAt };
    if (this.#halted !== undefined && parts.error !== undefined) this.#cancelled(node);
    else if (parts.error !== undefined) this.#failed(task, { exit: 1, error: parts.error });
    else this.#done(task, { exit: 0, value: parts.values }, false);
  }
}

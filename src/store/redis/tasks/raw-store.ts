import type { Bytes } from '../../../job/job.js';
import type {
  RawStore,
  Subscription,
  TaskClaim,
  TaskCompletion,
  TaskEvent,
  TaskGroup,
  TaskTopic,
} from '../../raw-store.js';
import type { WorkerSession } from '../../store.js';
import type { Again, Arg, Reply } from '../connection/client.js';
import type { Signals } from '../connection/signals.js';
import { walkTasks } from '../leases.js';
import { pack } from '../records/msgpack.js';
import type { Registry } from '../registry.js';
import type { ScriptName } from '../scripts.js';
import { text, type View } from '../view.js';
import { byBatch, readTasks } from './task-batches.js';
import { readTaskEvent } from './task-events.js';

/** Raw tasks on Redis: see the contract, and the header of each script. */
export class RedisRawStore implements RawStore {
  constructor(
    private readonly view: View,
    private readonly registry: Registry,
    private readonly signals: Signals,
  ) {}

  async enqueue(queue: string, groups: readonly TaskGroup[]): Promise<boolean[]> {
    await this.registry.add(queue);
    const { items, places } = merge(groups);
    const running = this.#run('enqueue_tasks', queue, [pack(items), this.#channel(queue, 'work')], false);
    this.signals.nudge(this.#keys(queue).channel);
    const accepted = groups.map(() => true);
    for (const refused of (await running) as number[]) accepted[places[refused - 1]!] = false;
    return accepted;
  }

  async claim({ queue, worker, lease }: WorkerSession, n: number, nonce: string): Promise<TaskClaim> {
    const reply = await this.#run('claim_tasks', queue, [worker, String(n), nonce, String(lease)], false);
    const [status, first, size, ...batches] = reply as [Buffer, number | undefined, number | undefined, ...Buffer[]];
    const taken: TaskClaim['claimed'] = [];
    readTasks({ first: first!, nonce, size: size!, batches }, (token, task) => taken.push({ token, task }));
    return { status: text(status) as TaskClaim['status'], claimed: taken };
  }

  async finish(queue: string, ends: readonly TaskCompletion[]): Promise<boolean[]> {
    const { items, order } = byBatch(ends);
    const hasResults = order.some((i) => ends[i]!.result !== undefined);
    const results = hasResults ? pack(order.map((i) => resultOf(ends[i]!))) : '';
    const isCluster = this.view.client.isCluster ? '1' : '';
    const answer = await this.view.run('finish_tasks', queue, [this.view.time(), pack(items), results, isCluster]);
    const applied = new Array<boolean>(ends.length).fill(false);
    for (const i of order) applied[i] = true;
    // An entry that a lost first try may have finished counts as finished.
    if (!answer.repeated) for (const stale of answer.reply as number[]) applied[order[stale - 1]!] = false;
    return applied;
  }

  async count(queue: string, wantsWork = false): Promise<number> {
    if (wantsWork) return (await this.#run('waiting_tasks', queue, [])) as number;
    return (await this.view.client.call('LLEN', this.#keys(queue).list)) as number;
  }

  async peek(queue: string): Promise<Bytes | undefined> {
    const task = await this.view.client.call('LINDEX', this.#keys(queue).list, '-1');
    return (task as Buffer | null) ?? undefined;
  }

  async tasks(queue: string): Promise<Bytes[]> {
    const list = (await this.view.client.call('LRANGE', this.#keys(queue).list, '0', '-1')) as Buffer[];
    return list.reverse();
  }

  async remove(queue: string, task: Bytes): Promise<number> {
    return (await this.#run('remove_tasks', queue, [asBuffer(task), this.#channel(queue, 'cancel')])) as number;
  }

  async clear(queue: string): Promise<void> {
    await this.#run('clear_tasks', queue, [this.#channel(queue, 'delete')]);
  }

  async findLeased(queue: string, task: Bytes): Promise<string[]> {
    const found = new Set<string>();
    for await (const one of walkTasks(this.view.client, this.#keys(queue).stem)) {
      if (one.task.equals(task)) found.add(one.lease.token);
    }
    return [...found];
  }

  async expireSession(queue: string, worker: string): Promise<boolean> {
    return (await this.#run('expire_session', queue, [worker])) === 1;
  }

  async updateSession(queue: string, worker: string, info: string): Promise<boolean> {
    return (await this.#run('update_session', queue, [worker, info])) === 1;
  }

  subscribe(queue: string, about: TaskTopic, listener: (event: TaskEvent) => void): Subscription {
    return this.signals.subscribe(`${this.#keys(queue).stem}${about}`, (message) => listener(readTaskEvent(message)));
  }

  /**
   * The channel of workers of the original Worqr. It does not support clusters, where a message would go to every
   * server.
   */
  #channel(queue: string, type: 'work' | 'cancel' | 'delete'): string {
    const { client, keys } = this.view;
    return client.isCluster ? '' : `${keys.prefix}_${queue}_${type}`;
  }

  #keys(queue: string): { list: string; stem: string; channel: string } {
    return this.view.keys.queue(queue);
  }

  async #run(name: ScriptName, queue: string, args: Arg[], again: Again = true): Promise<Reply> {
    return (await this.view.run(name, queue, [this.view.time(), ...args], again)).reply;
  }
}

function resultOf({ result }: TaskCompletion): string {
  return result === undefined ? '' : `=${result}`;
}

/** Merges adjacent plain groups into one. `places` are the original indexes of the groups. */
function merge(groups: readonly TaskGroup[]): { items: Arg[]; places: number[] } {
  const items: Arg[] = [];
  const places: number[] = [];
  let head = -1;
  let size = 0;
  for (const [i, { tasks, unique }] of groups.entries()) {
    if (unique || head < 0) {
      head = unique ? -1 : items.length;
      size = 0;
      places.push(i);
      items.push(`u${tasks.length}`);
    }
    for (const task of tasks) items.push(asBuffer(task));
    size += tasks.length;
    if (head >= 0) items[head] = `p${size}`;
  }
  return { items, places };
}

export function asBuffer(bytes: Bytes): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

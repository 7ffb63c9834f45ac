import type { Bytes } from '../../job/job.js';
import type {
  RawStore,
  Subscription,
  TaskClaim,
  TaskCompletion,
  TaskEvent,
  TaskGroup,
  TaskTopic,
} from '../raw-store.js';
import type { WorkerSession } from '../store.js';
import { flags, numbers, readFlags, texts } from './connection/arguments.js';
import { makeToken, splitToken } from './records/tokens.js';
import { TaskEvents } from './task-events.js';
import type { View } from './view.js';

const QUEUE = '(select q.n from crore.queues q where q.name = $1)';
/** Tasks with numbers from here on wait. */
const BACK = `(select task_back from crore.counters where queue = ${QUEUE} order by version desc limit 1)`;

/** Raw tasks on PostgreSQL: see the contract, and sql/tasks/. */
export class PostgresRawStore implements RawStore {
  readonly #events: TaskEvents;

  constructor(private readonly view: View) {
    this.#events = new TaskEvents(view);
  }

  async enqueue(queue: string, groups: readonly TaskGroup[]): Promise<boolean[]> {
    const all = groups.flatMap(({ tasks }) => tasks);
    const args = [
      Buffer.concat(all),
      numbers(all.map((task) => task.length)),
      numbers(groups.map(({ tasks }) => tasks.length)),
      flags(groups.map(({ unique }) => unique)),
    ];
    const accepted = readFlags(
      await this.view.client.value('enqueue_tasks', [this.view.time(), queue, ...args], false),
    );
    if (accepted.includes(true)) this.view.signals.emit(queue, { type: 'work' });
    return accepted;
  }

  async claim({ queue, worker, lease }: WorkerSession, n: number, nonce: string): Promise<TaskClaim> {
    const args = [this.view.time(), queue, worker, lease, n, nonce];
    const [head, ...rows] = await this.view.client.rows('claim_tasks', args, false);
    const own = head!.token as string;
    return {
      status: head!.status as TaskClaim['status'],
      claimed: rows.map((row) => ({ token: makeToken(0, row.n as number, own), task: row.task as Bytes })),
    };
  }

  async finish(queue: string, ends: readonly TaskCompletion[]): Promise<boolean[]> {
    const tokens = ends.map(({ token }) => splitToken(token));
    const args = [
      numbers(tokens.map(({ n }) => n)),
      texts(tokens.map(({ own }) => own)),
      texts(ends.map(({ token }) => token)),
      texts(ends.map(({ result }) => result)),
    ];
    return this.view.client.flags('finish_tasks', [this.view.time(), queue, ...args]);
  }

  async count(queue: string): Promise<number> {
    const text = `select tasks from crore.counters where queue = ${QUEUE} order by version desc limit 1`;
    const [row] = await this.view.client.read(text, [queue]);
    return (row?.tasks as number | undefined) ?? 0;
  }

  async peek(queue: string): Promise<Bytes | undefined> {
    return (await this.#bodies(queue, 1))[0];
  }

  tasks(queue: string): Promise<Bytes[]> {
    return this.#bodies(queue, null);
  }

  async remove(queue: string, task: Bytes): Promise<number> {
    return (await this.view.client.value('remove_tasks', [this.view.time(), queue, task])) as number;
  }

  async clear(queue: string): Promise<void> {
    await this.view.client.value('clear_tasks', [this.view.time(), queue]);
  }

  async findLeased(queue: string, task: Bytes): Promise<string[]> {
    const text = `select t.n, coalesce(t.token, l.token) as token from crore.tasks t
      left join lateral crore.task_lease_of(t.queue, t.n) l on t.worker is null and (t.seq < 0) is not true
      where t.queue = ${QUEUE} and t.body = $2::bytea and (t.worker is not null or l.token is not null)`;
    const rows = await this.view.client.read(text, [queue, task]);
    return rows.map((row) => makeToken(0, row.n as number, row.token as string));
  }

  async expireSession(queue: string, worker: string): Promise<boolean> {
    return (await this.view.client.value('expire_session', [queue, worker])) === true;
  }

  async updateSession(queue: string, worker: string, info: string): Promise<boolean> {
    return (await this.view.client.value('update_session', [queue, worker, info])) === true;
  }

  subscribe(queue: string, about: TaskTopic, listener: (event: TaskEvent) => void): Subscription {
    return this.#events.subscribe(queue, about, listener);
  }

  close(): void {
    this.#events.close();
  }

  async #bodies(queue: string, limit: number | null): Promise<Bytes[]> {
    const waiting = (place: string, which: string) =>
      `(select body, ${place} as place from crore.tasks where queue = ${QUEUE} and ${which} order by ${place} limit $2::bigint)`;
    const text = `${waiting('seq', 'worker is null and seq < 0')} union all ${waiting('n', `n >= ${BACK}`)} order by place limit $2::bigint`;
    return (await this.view.client.read(text, [queue, limit])).map((row) => row.body as Bytes);
  }
}

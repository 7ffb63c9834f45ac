import type { NewJob } from '../../job/job.js';
import type { NewSchedule, Schedule, ScheduleStore } from '../store.js';
import type { Reply } from './connection/client.js';
import type { KeyWatch } from './connection/key-watch.js';
import { addArguments } from './records/arguments.js';
import type { Registry } from './registry.js';
import { text, type View } from './view.js';

/**
 * A schedule is stored in the slot of its queue, so that one script handles a tick and its job. A registry of names
 * stores the queue of each; it is written separately, and decides if two queues claim the same name.
 */
export class RedisSchedules implements ScheduleStore {
  #wereNone = false;

  constructor(
    private readonly view: View,
    private readonly registry: Registry,
    private readonly watch: KeyWatch,
  ) {}

  async put({ name, queue, definition, since, next }: NewSchedule): Promise<Schedule> {
    await this.registry.add(queue);
    const { client, keys } = this.view;
    const before = await client.call('HGET', keys.schedules, name);
    const isNew = before === null || text(before) !== queue;
    if (before !== null && isNew) await this.#removeFrom(text(before), name);
    const args = [
      this.view.time(),
      name,
      definition,
      String(since),
      next === undefined ? '' : String(next),
      isNew ? '1' : '0',
    ];
    const { reply } = await this.view.run('put_schedule', queue, args);
    await client.call('HSET', keys.schedules, name, queue);
    this.#wereNone = false; // the message of the server may come later
    const [began, , at, last] = reply as Reply[];
    return toSchedule(queue, [name, text(began!), definition, text(at ?? null), text(last ?? null)]);
  }

  async fire(
    { name, queue, definition, next: tick }: Schedule,
    { jobs, next, last }: { jobs: readonly NewJob[]; next?: number; last?: number },
  ): Promise<boolean> {
    const args = addArguments(queue, jobs, this.view.time(), this.view.now(), {});
    args.push(
      name,
      definition,
      String(tick),
      next === undefined ? '' : String(next),
      last === undefined ? '' : String(last),
    );
    const { reply } = await this.view.run('fire_schedule', queue, args);
    return text((reply as Reply[])[0] ?? null) !== 'stale';
  }

  async list(): Promise<Schedule[]> {
    const { client, keys } = this.view;
    this.watch.watch([keys.schedules], () => {});
    const flat = (await client.call('HGETALL', keys.schedules)) as Buffer[];
    this.#wereNone = flat.length === 0;
    const home = new Map<string, string>();
    for (let i = 0; i < flat.length; i += 2) home.set(text(flat[i]!), text(flat[i + 1]!));
    const found: Schedule[] = [];
    for (const queue of new Set(home.values())) {
      const fields = ((await this.view.run('schedules', queue, [this.view.time()])).reply as Reply[]).map(text);
      for (let i = 0; i < fields.length; i += 5) {
        if (home.get(fields[i]!) === queue) found.push(toSchedule(queue, fields.slice(i, i + 5)));
      }
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Every process that works looks for schedules every five seconds. */
  areNone(): boolean {
    return this.#wereNone && this.watch.isUnwritten(this.view.keys.schedules);
  }

  async remove(name: string): Promise<boolean> {
    const { client, keys } = this.view;
    const queue = await client.call('HGET', keys.schedules, name);
    if (queue === null) return false;
    const removed = await this.#removeFrom(text(queue), name);
    await client.call('HDEL', keys.schedules, name);
    return removed;
  }

  async #removeFrom(queue: string, name: string): Promise<boolean> {
    const { reply, repeated } = await this.view.run('remove_schedule', queue, [this.view.time(), name]);
    return repeated || reply === 1;
  }
}

function toSchedule(queue: string, [name, since, definition, next, last]: string[]): Schedule {
  return {
    name: name!,
    queue,
    definition: definition!,
    since: Number(since),
    ...(next === '' ? {} : { next: Number(next) }),
    ...(last === '' ? {} : { last: Number(last) }),
  };
}

import type { NewJob } from '../../job/job.js';
import type { NewSchedule, Schedule } from '../store.js';
import type { Reply } from './connection/client.js';
import { text, type View } from './reads.js';
import { addArguments } from './records/arguments.js';

/**
 * A schedule is stored in the slot of its queue, so that one script handles a tick and its job. A registry of names
 * stores the queue of each; it is written separately, and decides if two queues claim the same name.
 */
export class Schedules {
  constructor(
    private readonly view: View,
    private readonly now: () => number,
  ) {}

  async put({ name, queue, definition, since, next }: NewSchedule): Promise<Schedule> {
    const { client, keys, time } = this.view;
    const before = await client.call('HGET', keys.schedules, name);
    const strange = before === null || text(before) !== queue;
    if (before !== null && strange) await this.#dropIn(text(before), name);
    const args = [time(), name, definition, String(since), next === undefined ? '' : String(next), strange ? '1' : '0'];
    const { reply } = await client.run('put_schedule', keysOf(this.view, queue), args);
    await client.call('HSET', keys.schedules, name, queue);
    const [began, , at, last] = reply as Reply[];
    return toSchedule(queue, [name, text(began!), definition, text(at ?? null), text(last ?? null)]);
  }

  async fire(
    { name, queue, definition, next: tick }: Schedule,
    { jobs, next, last }: { jobs: readonly NewJob[]; next?: number; last?: number },
  ): Promise<boolean> {
    const args = addArguments(queue, jobs, this.view.time(), this.now(), {});
    args.push(
      name,
      definition,
      String(tick),
      next === undefined ? '' : String(next),
      last === undefined ? '' : String(last),
    );
    const { reply } = await this.view.client.run('fire_schedule', keysOf(this.view, queue), args);
    return text((reply as Reply[])[0] ?? null) !== 'stale';
  }

  async all(): Promise<Schedule[]> {
    const { client, keys, time } = this.view;
    const flat = (await client.call('HGETALL', keys.schedules)) as Buffer[];
    const home = new Map<string, string>();
    for (let i = 0; i < flat.length; i += 2) home.set(text(flat[i]!), text(flat[i + 1]!));
    const found: Schedule[] = [];
    for (const queue of new Set(home.values())) {
      const fields = ((await client.run('schedules', keysOf(this.view, queue), [time()])).reply as Reply[]).map(text);
      for (let i = 0; i < fields.length; i += 5) {
        if (home.get(fields[i]!) === queue) found.push(toSchedule(queue, fields.slice(i, i + 5)));
      }
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  async drop(name: string): Promise<boolean> {
    const { client, keys } = this.view;
    const queue = await client.call('HGET', keys.schedules, name);
    if (queue === null) return false;
    const dropped = await this.#dropIn(text(queue), name);
    await client.call('HDEL', keys.schedules, name);
    return dropped;
  }

  async #dropIn(queue: string, name: string): Promise<boolean> {
    const { client, time } = this.view;
    const { reply, repeated } = await client.run('remove_schedule', keysOf(this.view, queue), [time(), name]);
    return repeated || reply === 1;
  }
}

function keysOf({ keys }: View, queue: string): [string, string] {
  const { list, stem } = keys.queue(queue);
  return [list, stem];
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

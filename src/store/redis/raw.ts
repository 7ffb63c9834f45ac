import type { Bytes } from '../../job/job.js';
import type { Ear, News, RawStore, Take, TaskEnd, TaskGroup, Topic } from '../raw.js';
import type { Beat } from '../store.js';
import type { Again, Arg, Reply } from './client.js';
import { THREE_DIGITS } from './entries.js';
import { readNews } from './news.js';
import { pack, unpack } from './pack.js';
import { text, type View } from './reads.js';
import type { ScriptName } from './scripts.js';
import type { Signals } from './signals.js';

export interface RedisRawSetup {
  view: View;
  signals: Signals;
  /** Puts a queue's name on record. */
  register: (queue: string) => Promise<void>;
}

/** Raw tasks by hand on Redis: see the contract, and the header of each script. */
export class RedisRaw implements RawStore {
  constructor(private readonly setup: RedisRawSetup) {}

  async enqueue(queue: string, groups: readonly TaskGroup[]): Promise<boolean[]> {
    await this.setup.register(queue);
    const { items, places } = merge(groups);
    const running = this.#run('enqueue', queue, [pack(items)], false);
    this.setup.signals.nudge(this.#keys(queue).channel);
    const accepted = groups.map(() => true);
    for (const refused of (await running) as number[]) accepted[places[refused - 1]!] = false;
    return accepted;
  }

  async take({ queue, worker, lease }: Beat, n: number, nonce: string): Promise<Take> {
    const reply = await this.#run('take', queue, [worker, String(n), nonce, String(lease)], false);
    const [status, first, tasks] = reply as [Buffer, number | undefined, Buffer | undefined];
    const taken: Take['taken'] = [];
    if (tasks) {
      unpack(tasks, (start, end, i) => {
        const token = `1.${first}-${THREE_DIGITS[i]}.${nonce}`;
        taken.push({ token, task: tasks.subarray(start, end) });
      });
    }
    return { status: text(status) as Take['status'], taken };
  }

  async finish(queue: string, ends: readonly TaskEnd[]): Promise<boolean[]> {
    const { client, time } = this.setup.view;
    const firsts = firstPlaces(ends);
    const tokens = firsts.map((i) => ends[i]!.token);
    const results = firsts.some((i) => ends[i]!.result !== undefined) ? firsts.map((i) => resultOf(ends[i]!)) : [];
    const { list, stem } = this.#keys(queue);
    const args = [time(), pack(tokens), results.length > 0 ? pack(results) : '', client.isCluster ? '1' : ''];
    const answer = await client.run('finish', [list, stem], args);
    const applied = new Array<boolean>(ends.length).fill(false);
    for (const i of firsts) applied[i] = true;
    // What was perhaps done by a lost first try counts as done.
    if (!answer.repeated) for (const stale of answer.reply as number[]) applied[firsts[stale - 1]!] = false;
    return applied;
  }

  async count(queue: string): Promise<number> {
    return (await this.setup.view.client.call('LLEN', this.#keys(queue).list)) as number;
  }

  async waiting(queue: string): Promise<number> {
    return (await this.#run('waiting', queue, [])) as number;
  }

  async peek(queue: string): Promise<Bytes | undefined> {
    const task = await this.setup.view.client.call('LINDEX', this.#keys(queue).list, '-1');
    return (task as Buffer | null) ?? undefined;
  }

  async tasks(queue: string): Promise<Bytes[]> {
    const list = (await this.setup.view.client.call('LRANGE', this.#keys(queue).list, '0', '-1')) as Buffer[];
    return list.reverse();
  }

  async remove(queue: string, task: Bytes): Promise<number> {
    return (await this.#run('remove_tasks', queue, [asBuffer(task)])) as number;
  }

  async clear(queue: string): Promise<void> {
    await this.#run('clear', queue, []);
  }

  async matching(queue: string, task: Bytes): Promise<string[]> {
    const found = new Set<string>();
    let cursor = '0';
    do {
      const [next, ...tokens] = (await this.#run('matching', queue, [cursor, asBuffer(task)])) as Buffer[];
      cursor = text(next!);
      for (const token of tokens) found.add(text(token));
    } while (cursor !== '0');
    return [...found];
  }

  async doom(queue: string, worker: string): Promise<boolean> {
    return (await this.#run('doom', queue, [worker])) === 1;
  }

  async bury(queue: string, worker: string): Promise<void> {
    await this.#run('leave', queue, [worker, '1']);
  }

  async inform(queue: string, worker: string, info: string): Promise<boolean> {
    return (await this.#run('inform', queue, [worker, info])) === 1;
  }

  listen(queue: string, about: Topic, listener: (news: News) => void): Ear {
    return this.setup.signals.hear(`${this.#keys(queue).stem}${about}`, (message) => listener(readNews(message)));
  }

  #keys(queue: string): { list: string; stem: string; channel: string } {
    return this.setup.view.keys.queue(queue);
  }

  async #run(name: ScriptName, queue: string, args: Arg[], again: Again = true): Promise<Reply> {
    const { list, stem } = this.#keys(queue);
    return (await this.setup.view.client.run(name, [list, stem], [this.setup.view.time(), ...args], again)).reply;
  }
}

/** Where each distinct token stands first. */
function firstPlaces(ends: readonly TaskEnd[]): number[] {
  const seen = new Set<string>();
  const places: number[] = [];
  for (let i = 0; i < ends.length; i++) {
    const { token } = ends[i]!;
    if (seen.has(token)) continue;
    seen.add(token);
    places.push(i);
  }
  return places;
}

function resultOf({ result }: TaskEnd): string {
  return result === undefined ? '' : `=${result}`;
}

/** Neighbouring plain groups travel as one. `places` are the indexes of the groups as they were given. */
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

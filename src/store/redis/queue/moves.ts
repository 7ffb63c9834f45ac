import { randomBytes } from 'node:crypto';
import { isRelated } from '../../../job/spec.js';
import { moveLine } from '../../manual-changes.js';
import type { MoveOutcome } from '../../store.js';
import type { Arg, Reply } from '../connection/client.js';
import { get } from '../reads.js';
import type { Registry } from '../registry.js';
import { text, type View } from '../view.js';

/** Messages that one sweep delivers. */
const PAGE = 100;

interface Message {
  to: string;
  /** Nonce and id, by which the other queue remembers it. */
  mark: string;
  id: string;
  bytes: Buffer;
}

/**
 * Moves jobs between queues, which are in different slots. A job is taken out of its queue into a message (`moving`), delivered to the
 * other queue, which remembers the delivery (`arrived`), and then the message is deleted. Each step can be repeated; a sweep of the first queue
 * finishes what was interrupted. A job that the other queue refuses returns.
 */
export class Moves {
  constructor(
    private readonly view: View,
    private readonly registry: Registry,
  ) {}

  async move(queue: string, ids: readonly string[], to: string, by?: string): Promise<MoveOutcome[]> {
    const [jobs, others] = await Promise.all([get(this.view, queue, ids), get(this.view, to, ids)]);
    const outcomes = ids.map((_id, i): MoveOutcome | undefined => {
      const job = jobs[i];
      if (!job) return undefined;
      if (job.state === 'active' || job.state === 'done' || job.state === 'cancelled') return 'started';
      if (job.spec.needs || isRelated(job.spec)) return 'linked';
      return others[i] ? 'taken' : undefined;
    });
    const asked = ids.map((_id, i) => i).filter((i) => outcomes[i] === undefined);
    if (asked.length === 0) return outcomes as MoveOutcome[];
    await this.registry.add(to);
    const issued = this.view.now();
    const line = moveLine(queue, issued, by) ?? '';
    const args: Arg[] = [this.view.time(), to, randomBytes(9).toString('base64url'), line];
    for (const i of asked) args.push(ids[i]!, jobs[i]?.spec.unique?.key ?? '');
    const { reply, repeated } = await this.view.run('move_out', queue, args);
    const found = reply as Buffer[];
    const messages: Message[] = [];
    asked.forEach((i, k) => {
      const outcome = text(found[2 * k]!) as MoveOutcome;
      const bytes = found[2 * k + 1]!;
      // After a lost reply, a job that is gone was taken out by the first try, and a sweep has delivered it.
      outcomes[i] = outcome === 'unknown' && repeated && jobs[i] ? 'moved' : outcome;
      if (bytes.length > 0) messages.push(messageOf(ids[i]!, bytes));
    });
    const returned = await this.#deliver(queue, messages, issued);
    return outcomes.map((outcome, i) => (returned.has(ids[i]!) ? 'taken' : outcome!));
  }

  /** Finishes moves from this queue that were interrupted. */
  async resume(queue: string): Promise<void> {
    const issued = this.view.now();
    const { stem } = this.view.keys.queue(queue);
    const args = [`${stem}moving`, '0', 'COUNT', String(PAGE)];
    const [, fields] = (await this.view.client.call('HSCAN', ...args)) as [Reply, Buffer[]];
    const messages: Message[] = [];
    for (let i = 0; i < fields.length; i += 2) messages.push(messageOf(fields[i]!.toString(), fields[i + 1]!));
    await this.#deliver(queue, messages, issued);
  }

  /** Returns the ids of jobs that the other queue has refused, and that are back. */
  async #deliver(queue: string, messages: readonly Message[], issued: number): Promise<Set<string>> {
    const returned = new Set<string>();
    for (const to of new Set(messages.map((message) => message.to))) {
      const mine = messages.filter((message) => message.to === to);
      await this.registry.add(to);
      const time = this.view.time();
      const args: Arg[] = [time, String(Math.floor(issued)), '', ...mine.map(({ bytes }) => bytes)];
      const replies = ((await this.view.run('move_in', to, args)).reply as Buffer[]).map((one) => text(one));
      const those = (outcome: string) => mine.filter((_message, i) => replies[i] === outcome);
      const [delivered, refused] = [those('in'), those('taken')];
      if (delivered.length > 0) {
        await this.view.run('move_done', queue, [time, ...delivered.map(({ bytes }) => bytes)]);
        await this.view.run('move_cleared', to, [time, ...delivered.map(({ mark }) => mark)]);
      }
      if (refused.length > 0)
        await this.view.run('move_in', queue, [time, '0', '1', ...refused.map(({ bytes }) => bytes)]);
      for (const { id } of refused) returned.add(id);
    }
    return returned;
  }
}

function messageOf(id: string, bytes: Buffer): Message {
  const first = bytes.indexOf(0);
  const nonce = bytes.subarray(first + 1, bytes.indexOf(0, first + 1)).toString();
  return { to: bytes.subarray(0, first).toString(), mark: `${nonce}\0${id}`, id, bytes };
}

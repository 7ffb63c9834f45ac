import { CroreError } from '../../errors.js';
import type { JobRef, NewJob, State } from '../../job/job.js';
import type { BatchStore, MemberPage } from '../store.js';
import type { Arg } from './connection/client.js';
import { groupBy, MEMBER, NUL, pairs, splitOnce } from './edges.js';
import { text, type View } from './view.js';

/** Batches: their members may be in other slots than the job that stands for the batch. */
export class RedisBatches implements BatchStore {
  constructor(private readonly view: View) {}

  async close(queue: string, id: string): Promise<State | undefined> {
    const { reply } = await this.view.run('close_batch', queue, [this.view.time(), id]);
    return text(reply) === '' ? undefined : (text(reply) as State);
  }

  /**
   * Reserves places in batches for new jobs, before they are added: a batch cannot end before its members. Returns a function that
   * releases those of jobs that were not added.
   */
  async reserve(queue: string, jobs: readonly NewJob[]): Promise<(isAdded: (job: NewJob) => boolean) => Promise<void>> {
    const reserved: { batch: JobRef; jobs: NewJob[] }[] = [];
    const members = jobs.filter((job) => job.spec.batch);
    const release = async (isAdded: (job: NewJob) => boolean) => {
      for (const { batch, jobs: held } of reserved) {
        const ids = held.filter((job) => !isAdded(job)).map((job) => job.id);
        if (ids.length === 0) continue;
        await this.view.run('release_members', batch.queue, memberArguments(this.view.time(), batch, queue, ids));
      }
    };
    for (const indexes of groupBy(members, ({ spec }) => `${spec.batch!.queue}${NUL}${spec.batch!.id}`).values()) {
      const page = indexes.map((i) => members[i]!);
      const batch = page[0]!.spec.batch!;
      const args = memberArguments(
        this.view.time(),
        batch,
        queue,
        page.map(({ id }) => id),
      );
      const { reply } = await this.view.run('reserve_members', batch.queue, args);
      if (!Array.isArray(reply)) {
        await release(() => false);
        throw refused(batch, text(reply));
      }
      reserved.push({ batch, jobs: (reply as number[]).map((index) => page[index - 1]!) });
    }
    return release;
  }

  /** Members of a batch that have not ended: some fields of the edges of its queue each time. */
  async openMembers(queue: string, id: string, options: { limit: number; cursor?: string }): Promise<MemberPage> {
    const key = `${this.view.keys.queue(queue).stem}edges`;
    const count = String(Math.max(options.limit, 100));
    const match = `${id.replace(/[*?[\]\\]/g, '\\$&')}${NUL}*`;
    const reply = await this.view.client.call('HSCAN', key, options.cursor ?? '0', 'MATCH', match, 'COUNT', count);
    const [next, flat] = reply as [Buffer, Buffer[]];
    const members = pairs(flat)
      .filter(([, policy]) => policy.startsWith(MEMBER))
      .map(([field]) => splitOnce(splitOnce(field)[1]))
      .map(([other, member]) => ({ queue: other === '' ? queue : other, id: member }));
    return { members, ...(next.toString() === '0' ? {} : { cursor: next.toString() }) };
  }
}

function memberArguments(now: string, batch: JobRef, queue: string, ids: readonly string[]): Arg[] {
  return [now, batch.id, batch.queue === queue ? '' : queue, ...ids];
}

function refused({ queue, id }: JobRef, why: string): CroreError {
  return why === 'missing'
    ? new CroreError('NOT_FOUND', `there is no batch '${id}' in queue '${queue}'`)
    : new CroreError('BATCH_CLOSED', `batch '${id}' of queue '${queue}' is closed`);
}

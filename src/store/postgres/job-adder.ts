import { CroreError } from '../../errors.js';
import type { Bytes, NewJob } from '../../job/job.js';
import type { WaitingClaim } from '../handover.js';
import { type AddOutcome, type Capacity, CREATED, FULL, type SourceStore } from '../store.js';
import { type Arg, json, numbers, texts } from './connection/arguments.js';
import type { Row } from './connection/client.js';
import { arePlain, otherQueues, plainArguments, writeJob } from './records/new-jobs.js';
import type { View } from './view.js';

type Claims = WaitingClaim<readonly Arg[], Row[]>[];

/** Adds jobs and raw tasks. If the answer is lost, an add is repeated, because ids tell what is there; a push is not. */
export class JobAdder {
  readonly sources: SourceStore;

  constructor(private readonly view: View) {
    this.sources = {
      add: async (queue, jobs, { source, from, to }) => {
        const { rows } = await view.related('add_from_source', [...addArguments(queue, jobs), source, from, to], false);
        if (rows[0]?.outcome === 'stale') return 'stale';
        view.signals.emit(queue, { type: 'work' });
        return outcomes(jobs, rows);
      },
      position: async (queue, source) => {
        const text = `select position from crore.source_positions p join crore.queues q on q.n = p.queue where q.name = $1 and source = $2`;
        const [row] = await view.client.read(text, [queue, source]);
        return (row?.position as string | undefined) ?? '';
      },
    };
  }

  async push(queue: string, tasks: readonly Bytes[], { count = null, bytes = null }: Limits): Promise<boolean> {
    const args = [
      this.view.time(),
      queue,
      Buffer.concat(tasks),
      numbers(tasks.map((task) => task.length)),
      count,
      bytes,
    ];
    const left = this.#timeLeft();
    const claims = this.#waitingClaims(queue);
    try {
      if (claims[0] && (await this.#ahead('push_and_claim', args, claims))) return true;
      const accepted = (await this.view.client.value('push', args, false, left())) === true;
      if (accepted) this.view.signals.emit(queue, { type: 'work' });
      return accepted;
    } finally {
      for (const claim of claims) claim.send();
    }
  }

  /** The time limit covers the usual way, too, if it has to be tried second. */
  #timeLeft(): () => number {
    const { timeout } = this.view.client;
    const deadline = performance.now() + timeout;
    return () => Math.max(1, deadline - performance.now());
  }

  /** The claims of workers in this process that wait for work. */
  #waitingClaims(queue: string): Claims {
    return this.view.handover?.collect(queue, () => this.view.signals.emit(queue, { type: 'work' })) ?? [];
  }

  /** Adds, and claims for the first of these workers, which starts while we wait for the disk: pickup in 1.1 ms instead of 1.4. The others follow. */
  async #ahead(name: string, args: readonly Arg[], claims: Claims): Promise<boolean> {
    const claim = claims.shift()!;
    let isAnswered = false;
    try {
      const added = await this.view.client.ahead(name, [...args, ...claim.args], (rows) => {
        isAnswered = true;
        claim.answer(rows);
        for (const other of claims.splice(0)) other.send();
      });
      if (!added) claims.unshift(claim);
      return added;
    } catch (error) {
      if (!isAnswered) claim.lose();
      throw error;
    }
  }

  async add(queue: string, jobs: readonly NewJob[], { count = null, bytes = null }: Limits): Promise<AddOutcome[]> {
    if (jobs.length === 0) return [];
    const plain = await this.#addPlain(queue, jobs, count, bytes);
    if (plain.added) return jobs.map(() => CREATED);
    // The ids tell what a first try has added; generated ones have to be looked up then, too.
    const known = () => jobs.map((job) => ({ ...job, fresh: undefined }));
    const args = (given: readonly NewJob[]) => [...addArguments(queue, given), count, bytes];
    const answer = await this.view.related('add_many', args(plain.repeated ? known() : jobs), () => args(known()));
    const repeated = plain.repeated || answer.repeated;
    this.view.signals.emit(queue, { type: 'work' });
    const all = outcomes(jobs, answer.rows);
    return repeated ? all.map((one, i) => (isOwn(one, jobs[i]!) ? CREATED : one)) : all;
  }

  /** The common case; not added if there is something special about these jobs, an id is taken, or there is no room. */
  async #addPlain(queue: string, jobs: readonly NewJob[], count: number | null, bytes: number | null) {
    const args = plainArguments(jobs);
    if (!args) return { added: false, repeated: false };
    const call = (known: boolean) => [this.view.time(), queue, ...args, known, count, bytes];
    const known = jobs.some(({ fresh }) => !fresh);
    const left = this.#timeLeft();
    const claims = this.#waitingClaims(queue);
    try {
      const ahead = claims[0] && (await this.#addAhead(call(known), claims));
      if (ahead === 'added') return { added: true, repeated: false };
      const again = ahead === 'uncertain';
      const { rows, repeated } = await this.view.client.run(
        'add_plain',
        call(known || again),
        () => call(true),
        left(),
      );
      const added = rows[0]!.add_plain === true;
      if (added) this.view.signals.emit(queue, { type: 'work' });
      return { added, repeated: repeated || again };
    } finally {
      for (const claim of claims) claim.send();
    }
  }

  async #addAhead(args: readonly Arg[], claims: Claims): Promise<'added' | 'not added' | 'uncertain'> {
    try {
      return (await this.#ahead('add_and_claim', args, claims)) ? 'added' : 'not added';
    } catch (error) {
      if (error instanceof CroreError && error.code === 'STORE_UNCERTAIN') return 'uncertain';
      throw error;
    }
  }
}

/** The duplicate of a job that was added with this id, by the first try or before it. */
function isOwn(outcome: AddOutcome, { id }: NewJob): boolean {
  return outcome.outcome === 'duplicate' && outcome.id === id;
}

type Limits = { [K in keyof Capacity]: Capacity[K] | null };

export function addArguments(queue: string, jobs: readonly NewJob[]) {
  return [queue, json(jobs.map(writeJob)), arePlain(jobs), texts(otherQueues(queue, jobs))];
}

/** The rows are those of jobs that were not created. */
function outcomes(jobs: readonly NewJob[], rows: Row[]): AddOutcome[] {
  const all: AddOutcome[] = jobs.map(() => CREATED);
  for (const { place, outcome, existing } of rows as { place: number; outcome: string; existing: string }[]) {
    all[place] = outcome === 'full' ? FULL : { outcome: outcome as 'duplicate', id: existing };
  }
  return all;
}

import { expect } from 'vitest';
import type { Entry, Job, NewJob } from '../../dist/job/job.js';
import { DEFAULT_SPEC } from '../../dist/job/spec.js';
import { die, fail, finish, lose, type Move, release, snooze } from '../../dist/job/transitions.js';
import type { Beat, Lost, Pace, Settlement, Store } from '../../dist/store/store.js';
import { names } from '../support/jobs.js';
import { Model } from './model.js';

export const LEASE = 1_000;

/** One thing that can happen. Numbers choose among what there is, so that every sequence makes sense. */
export type Step =
  | {
      do: 'add';
      jobs: {
        id: number;
        priority: number;
        delay: number;
        key: number;
        reservation: number;
        needs: number[];
        on: boolean;
        group: number;
        mode: number;
      }[];
    }
  | { do: 'push'; tasks: number }
  | { do: 'claim'; worker: number; n: number }
  | { do: 'settle'; picks: { which: number; how: 'done' | 'fail' | 'die' | 'release' | 'snooze' }[] }
  | { do: 'beat'; worker: number }
  | { do: 'join'; worker: number }
  | { do: 'wait'; ms: number }
  | { do: 'sweep' }
  | { do: 'cancel'; id: number }
  | { do: 'report'; id: number }
  | { do: 'revive'; id: number }
  | { do: 'remove'; id: number }
  | { do: 'pace'; pace: Pace }
  | { do: 'pause'; paused: boolean }
  | { do: 'unique' | 'drop'; task: number }
  | { do: 'take'; worker: number; n: number }
  | { do: 'finish'; which: number }
  | { do: 'clear' }
  | { do: 'doom'; worker: number };

type ByHand = Extract<Step, { do: 'unique' | 'drop' | 'take' | 'finish' | 'clear' | 'doom' }>;
const NO_RECORD: NewJob = { id: '', payload: '', priority: 0, spec: DEFAULT_SPEC };

/** The same claimed entry as each side sees it; the model's comes first. */
type Leased = Entry[];

/** Drives the model and the stores with the same steps and compares all that can be seen after each. */
export class SideBySide {
  now = 1_800_000_000_000;
  readonly #model: Model;
  readonly #leased: Leased[] = [];
  readonly #ids = new Set<string>();
  #born = 0;
  #payloads = 0;
  #tasks = 0;

  constructor(
    private readonly queue: string,
    private readonly stores: Store[],
  ) {
    this.#model = new Model(queue, () => this.now);
  }

  async run(step: Step): Promise<void> {
    await this.#apply(step);
    await this.#compare(step);
  }

  /** At the end everything that is left must come out in the same order everywhere. */
  async drain(): Promise<void> {
    await this.run({ do: 'pause', paused: false });
    await this.run({ do: 'join', worker: 9 });
    await this.run({ do: 'wait', ms: 600 });
    for (let i = 0; i < 40; i++) await this.run({ do: 'claim', worker: 9, n: 3 });
  }

  #each<T>(call: (store: Store) => Promise<T>): Promise<T[]> {
    return Promise.all(this.stores.map(call));
  }

  async #apply(step: Step): Promise<void> {
    const { queue } = this;
    switch (step.do) {
      case 'add':
        return this.#add(step.jobs.map((job) => this.#newJob(job)));
      case 'push': {
        const tasks = Array.from({ length: step.tasks }, () => Buffer.from(`task ${++this.#tasks}`));
        this.#model.push(tasks);
        await this.#each((store) => store.push(queue, tasks));
        return;
      }
      case 'claim':
        return this.#claim(`w${step.worker}`, step.n);
      case 'settle':
        return this.#settle(step.picks);
      case 'beat': {
        const worker = `w${step.worker}`;
        const alive = this.#model.beat(worker, LEASE);
        for (const answer of await this.#each((store) => store.beat([{ queue, worker, lease: LEASE }])))
          expect(answer).toEqual([alive]);
        return;
      }
      case 'join': {
        this.#model.join(`w${step.worker}`, LEASE);
        await this.#each((store) => store.join(queue, `w${step.worker}`, { lease: LEASE, info: '' }));
        return;
      }
      case 'wait':
        this.now += step.ms;
        return;
      case 'sweep':
        return this.#sweep();
      case 'cancel': {
        const cancelled = this.#model.cancel(`j${step.id}`);
        for (const answer of await this.#each((store) => store.cancel(queue, [`j${step.id}`])))
          expect(answer).toEqual([cancelled]);
        return;
      }
      case 'report': {
        const reported = this.#model.report(`j${step.id}`);
        for (const answer of await this.#each((store) => store.report(queue, [`j${step.id}`])))
          expect(answer).toEqual([reported]);
        return;
      }
      case 'revive': {
        const revived = this.#model.revive(`j${step.id}`);
        for (const answer of await this.#each((store) => store.revive(queue, [`j${step.id}`])))
          expect(answer).toEqual([revived]);
        return;
      }
      case 'remove': {
        const removed = this.#model.remove(`j${step.id}`);
        for (const answer of await this.#each((store) => store.remove(queue, [`j${step.id}`])))
          expect(answer).toEqual([removed]);
        return;
      }
      case 'pace':
        this.#model.setPace(step.pace);
        await this.#each((store) => store.setPace(queue, step.pace));
        return;
      case 'pause':
        this.#model.pause(step.paused);
        await this.#each((store) => store.pause(queue, step.paused));
        return;
      default:
        return this.#byHand(step);
    }
  }

  /** Raw tasks by hand. */
  async #byHand(step: ByHand): Promise<void> {
    const { queue } = this;
    switch (step.do) {
      case 'unique': {
        const tasks = [Buffer.from(`unique ${step.task}`)];
        const accepted = this.#model.enqueueUnique(tasks[0]!);
        for (const answer of await this.#each((store) => store.raw!.enqueue(queue, [{ tasks, unique: true }])))
          expect(answer).toEqual([accepted]);
        return;
      }
      case 'take':
        return this.#take({ queue, worker: `w${step.worker}`, lease: LEASE }, step.n);
      case 'finish': {
        const leased = this.#leased[step.which % Math.max(1, this.#leased.length)];
        const first = leased?.[0];
        if (!first?.task) return;
        const [wanted] = this.#model.settle([outcome(first, 'done', NO_RECORD)]);
        const answers = this.stores.map((store, i) =>
          store.raw!.finish(queue, [{ token: leased![i + 1]!.lease.token }]),
        );
        for (const answer of await Promise.all(answers)) expect(answer).toEqual([wanted]);
        return;
      }
      case 'drop': {
        const dropped = this.#model.drop(`unique ${step.task}`);
        const task = Buffer.from(`unique ${step.task}`);
        for (const answer of await this.#each((store) => store.raw!.remove(queue, task))) expect(answer).toBe(dropped);
        return;
      }
      case 'clear':
        this.#model.clear();
        await this.#each((store) => store.raw!.clear(queue));
        return;
      case 'doom': {
        const doomed = this.#model.doom(`w${step.worker}`);
        for (const answer of await this.#each((store) => store.raw!.doom(queue, `w${step.worker}`)))
          expect(answer).toBe(doomed);
      }
    }
  }

  async #take(session: Beat, n: number): Promise<void> {
    const wanted = this.#model.take(session, n);
    const takes = await this.#each((store) => store.raw!.take(session, n, 'nonce'));
    for (const { status, taken } of takes) {
      expect({ status, tasks: taken.map(({ task }) => Buffer.from(task).toString()) }).toEqual({
        status: wanted.status,
        tasks: names(wanted.entries),
      });
    }
    for (const [i, entry] of wanted.entries.entries()) {
      const sides = takes.map(({ taken }): Entry => {
        const { token, task } = taken[i]!;
        return { lease: { worker: session.worker, token }, task };
      });
      this.#leased.push([entry, ...sides]);
    }
  }

  #newJob(job: Extract<Step, { do: 'add' }>['jobs'][number]): NewJob {
    const id = `j${job.id}`;
    this.#ids.add(id);
    const modes = ['keep', 'extend', 'replace'] as const;
    const scopes = ['alive', 'waiting', 'window'] as const;
    const unique =
      job.key > 0
        ? {
            key: `k${job.key % 2}`,
            scope: scopes[job.key % 3]!,
            ttl: job.key % 3 === 2 ? 400 : 0,
            mode: modes[job.mode]!,
          }
        : undefined;
    const on = job.on ? ('success' as const) : ('finished' as const);
    const needs = [...new Set(job.needs)]
      .filter((up) => up !== job.id)
      .map((up) => ({ queue: this.queue, id: `j${up}`, on }));
    const spec = {
      ...DEFAULT_SPEC,
      attempts: 2,
      reservation: job.reservation,
      unique,
      group: job.group > 0 ? `g${job.group}` : undefined,
      needs: needs.length > 0 ? needs : undefined,
    };
    this.#payloads += 1;
    return { id, payload: `"${id} ${this.#payloads}"`, priority: job.priority, delay: job.delay, spec };
  }

  async #add(jobs: NewJob[]): Promise<void> {
    const wanted = this.#model.add(jobs);
    const answers = await this.#each((store) =>
      store.add(this.queue, jobs).catch((error: { code: string }) => error.code),
    );
    for (const answer of answers) expect(answer).toEqual(wanted === 'unknown' ? 'UNKNOWN_UPSTREAM' : wanted);
  }

  async #claim(worker: string, n: number): Promise<void> {
    const session = { queue: this.queue, worker, lease: LEASE };
    const wanted = this.#model.claim(session, n);
    const claims = await this.#each((store) => store.claim(session, n));
    for (const claim of claims) {
      expect({ status: claim.status, names: names(claim.entries) }).toEqual({
        status: wanted.status,
        names: names(wanted.entries),
      });
      expect(claim.entries.map((entry) => entry.job?.attempt)).toEqual(
        wanted.entries.map((entry) => entry.job?.attempt),
      );
      expect({ more: claim.more, nextAt: claim.nextAt }).toEqual({ more: wanted.more, nextAt: wanted.nextAt });
    }
    for (const [i, entry] of wanted.entries.entries())
      this.#leased.push([entry, ...claims.map((claim) => claim.entries[i]!)]);
  }

  /** Leases stay in the list after they are settled: later picks of them are the stale reports. */
  async #settle(picks: Extract<Step, { do: 'settle' }>['picks']): Promise<void> {
    if (this.#leased.length === 0) return;
    const batches: Settlement[][] = [[], ...this.stores.map(() => [])];
    for (const { which, how } of picks) {
      const leased = this.#leased[which % this.#leased.length]!;
      const record: NewJob = {
        id: `born${++this.#born}`,
        payload: leased[0]!.task ?? '',
        priority: 0,
        spec: DEFAULT_SPEC,
      };
      leased.forEach((entry, side) => void batches[side]!.push(outcome(entry, how, record)));
      if (leased[0]!.task && how !== 'done' && how !== 'release') this.#ids.add(record.id);
    }
    const wanted = this.#model.settle(batches[0]!);
    const answers = await Promise.all(this.stores.map((store, i) => store.settle(this.queue, batches[i + 1]!)));
    for (const answer of answers) expect(answer).toEqual(wanted);
  }

  async #sweep(): Promise<void> {
    const options = { lease: LEASE, every: 0 };
    const wanted = this.#model.sweep(options);
    const sweeps = await this.#each((store) => store.sweep(this.queue, options));
    const shown = (lost: readonly Lost[]) => lost.map((entry) => `${names([entry])[0]} ${entry.why}`);
    for (const { lost } of sweeps) expect([...shown(lost)].sort()).toEqual([...shown(wanted)].sort());
    this.#model.settle(wanted.map(judged));
    await Promise.all(this.stores.map((store, i) => store.settle(this.queue, sweeps[i]!.lost.map(judged))));
  }

  async #compare(step: Step): Promise<void> {
    const wanted = this.#model.count();
    for (const counts of await this.#each((store) => store.count(this.queue)))
      expect(counts, `counts after ${JSON.stringify(step)}`).toEqual(wanted);
    for (const tasks of await this.#each((store) => store.raw!.tasks(this.queue)))
      expect(tasks.map((task) => Buffer.from(task).toString())).toEqual(this.#model.tasks);
    const ids = [...this.#ids];
    const jobs = ids.map((id) => picture(this.#model.get(id)));
    for (const found of await this.#each((store) => store.get(this.queue, ids)))
      expect(found.map(picture)).toEqual(jobs);
  }
}

function outcome(entry: Entry, how: 'done' | 'fail' | 'die' | 'release' | 'snooze', record: NewJob): Settlement {
  const job = entry.job ?? { attempt: 1, crashes: 0, spec: DEFAULT_SPEC };
  const random = () => 0.5;
  const moves: Record<typeof how, () => Move> = {
    done: () => finish(job),
    fail: () => fail(job, 'failed', { random, delay: 70 }),
    die: () => die(job, 'died'),
    release: () => release(job),
    snooze: () => snooze(job, 90),
  };
  const needsRecord = entry.task !== undefined && how !== 'done' && how !== 'release';
  return {
    lease: entry.lease,
    move: moves[how](),
    spec: entry.job?.spec ?? DEFAULT_SPEC,
    priority: entry.job?.priority ?? 0,
    record: needsRecord ? record : undefined,
  };
}

function judged(entry: Lost): Settlement {
  if (!entry.job)
    return { lease: entry.lease, move: { to: 'ready', attempt: 0, crashes: 0 }, spec: DEFAULT_SPEC, priority: 0 };
  const { job } = entry;
  const move = entry.why === 'worker' ? lose(job, 2, 'x') : fail(job, 'late', { random: () => 0, delay: 60 });
  return { lease: entry.lease, move, spec: job.spec, priority: job.priority };
}

function picture(job: Job | undefined): unknown {
  if (!job) return undefined;
  const waits = job.state === 'scheduled' || job.state === 'blocked';
  return {
    id: job.id,
    payload: Buffer.from(job.payload).toString(),
    state: job.state,
    attempt: job.attempt,
    crashes: job.crashes,
    runAt: waits ? job.runAt : undefined,
  };
}

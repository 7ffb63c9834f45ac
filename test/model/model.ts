import {
  type Entry,
  isTerminal,
  type Job,
  type Lease,
  type NewJob,
  type State,
  type Terminal,
} from '../../dist/job/job.js';
import { isLegal } from '../../dist/job/states.js';
import type {
  AddOutcome,
  Claim,
  Counts,
  JobChanges,
  LostEntry,
  QueueLimits,
  Settlement,
  SourceStep,
  SweepOptions,
  WorkerSession,
} from '../../dist/store/store.js';
import { BreakerModel } from './breaker.js';
import { EventLog, endOf } from './event-log.js';
import { Groups } from './groups.js';
import { Lines, Tasks } from './queue-model.js';
import { ScheduleModel } from './schedule-model.js';

/**
 * The contract as plain data: how a queue behaves, regardless of speed. The stores have to match it step by step.
 * Every change of state goes through `to`, which knows the table of legal transitions.
 */

interface Ready {
  job?: Record_;
  task?: Uint8Array;
}

interface Record_ extends Job {
  needsLeft: Set<string>;
  order: number;
}

interface Held {
  lease: Lease;
  entry: Ready;
  seq: number;
}

export class Model {
  readonly #jobs = new Map<string, Record_>();
  readonly #sessions = new Map<string, number>();
  readonly #keys = new Map<string, { id: string; until: number }>();
  readonly #reserved = new Map<string, number>();
  readonly #lines = new Lines<Record_>();
  readonly #groups: Groups<Record_>;
  readonly tasks = new Tasks();
  #held: Held[] = [];
  #claims = 0;
  #paused = false;
  #swept: number | undefined;
  readonly #marks = new Map<string, string>();
  readonly log: EventLog;
  readonly breaker: BreakerModel;
  readonly schedules: ScheduleModel;

  constructor(
    private readonly queue: string,
    private readonly clock: () => number,
  ) {
    this.#groups = new Groups(clock);
    this.log = new EventLog(clock);
    this.breaker = new BreakerModel(clock, this.log);
    this.schedules = new ScheduleModel(clock, (jobs) => void this.add(jobs));
  }

  take({ worker, lease }: WorkerSession, n: number): { status: string; entries: Entry[] } {
    const deadline = this.#sessions.get(worker);
    if (deadline === undefined || deadline < 0) return { status: 'lost', entries: [] };
    this.#sessions.set(worker, Math.max(deadline, this.clock() + lease));
    if (this.#paused) return { status: 'paused', entries: [] };
    const { most } = this.#groups.leaves(n, this.#held.length);
    const entries = this.tasks.take(most).map((task) => this.#lease({ task }, worker));
    this.#groups.start(entries.length);
    return { status: 'ok', entries };
  }

  expireSession(worker: string): boolean {
    if (!this.#sessions.has(worker)) return false;
    this.#sessions.set(worker, -1);
    return true;
  }

  add(jobs: readonly NewJob[]): AddOutcome[] | 'unknown' {
    const batch = new Set<string>();
    for (const job of jobs) {
      for (const need of job.spec.needs ?? []) if (!batch.has(need.id) && !this.#jobs.has(need.id)) return 'unknown';
      batch.add(job.id);
    }
    return jobs.map((job) => this.#addOne(job));
  }

  addFromSource(jobs: readonly NewJob[], { source, from, to }: SourceStep): AddOutcome[] | 'unknown' | 'stale' {
    if (this.sourcePosition(source) !== from) return 'stale';
    const outcomes = this.add(jobs);
    if (outcomes !== 'unknown') this.#marks.set(source, to);
    return outcomes;
  }

  sourcePosition(source: string): string {
    return this.#marks.get(source) ?? '';
  }

  #addOne(job: NewJob): AddOutcome {
    if (this.#jobs.has(job.id)) return { outcome: 'duplicate', id: job.id };
    const { unique, needs = [] } = job.spec;
    const now = this.clock();
    const holder = unique && this.#keys.get(unique.key);
    if (holder && (holder.until === 0 || holder.until > now))
      return { outcome: this.#renew(job, this.#jobs.get(holder.id)), id: holder.id };
    const at = job.at ?? now + (job.delay ?? 0);
    // If an upstream in the same batch was refused, there is nothing to wait for.
    const ups = needs.map((need) => ({ need, up: this.#jobs.get(need.id) ?? { state: 'cancelled' as State } }));
    const record: Record_ = {
      ...{ queue: this.queue, id: job.id, payload: job.payload, priority: job.priority, spec: job.spec },
      ...{ state: 'ready' as State, attempt: 0, crashes: 0, createdAt: now, order: 0 },
      needsLeft: new Set(ups.filter(({ up }) => !isTerminal(up.state)).map(({ need }) => need.id)),
    };
    this.#jobs.set(job.id, record);
    this.log.tell('added', job.id);
    const failed = ups.some(
      ({ need, up }) => need.on === 'success' && (up.state === 'dead' || up.state === 'cancelled'),
    );
    if (failed) {
      record.state = 'cancelled';
      this.log.tell('cancelled', job.id);
      return { outcome: 'created' };
    }
    if (unique) this.#keys.set(unique.key, { id: job.id, until: unique.ttl > 0 ? now + unique.ttl : 0 });
    record.runAt = at;
    if (record.needsLeft.size > 0) record.state = 'blocked';
    else if (at > now) record.state = 'scheduled';
    else this.#enqueue(record, false);
    return { outcome: 'created' };
  }

  #renew(job: NewJob, first: Record_ | undefined): 'duplicate' | 'replaced' | 'extended' {
    const { unique } = job.spec;
    const mode = unique?.mode ?? 'keep';
    if (mode === 'keep' || !first || first.state === 'active' || isTerminal(first.state)) return 'duplicate';
    const now = this.clock();
    if (mode === 'replace') first.payload = job.payload;
    const waits = first.state === 'blocked' || (first.state === 'scheduled' && first.runAt! > now);
    if ((job.delay ?? 0) > 0 && waits && first.attempt === 0) first.runAt = now + job.delay!;
    if (unique!.ttl > 0) this.#keys.set(unique!.key, { id: first.id, until: now + unique!.ttl });
    this.log.tell('changed', first.id);
    return mode === 'replace' ? 'replaced' : 'extended';
  }

  setLimits(limits: QueueLimits): void {
    this.#groups.limits = limits;
  }

  join(worker: string, lease: number): void {
    this.#swept ??= this.clock();
    this.#sessions.set(worker, this.clock() + lease);
  }

  heartbeat(worker: string, lease: number): boolean {
    if ((this.#sessions.get(worker) ?? -1) < 0) return false;
    this.#sessions.set(worker, this.clock() + lease);
    return true;
  }

  claim({ worker, lease }: WorkerSession, n: number): Claim {
    const nothing = { entries: [], more: false };
    const deadline = this.#sessions.get(worker);
    if (deadline === undefined || deadline < 0) return { status: 'lost', ...nothing };
    this.#sessions.set(worker, Math.max(deadline, this.clock() + lease));
    if (this.#paused) return { status: 'paused', ...nothing };
    const { openUntil, single } = this.breaker;
    if (openUntil !== undefined) return { status: 'paused', ...nothing, nextAt: openUntil };
    this.#promote();
    const { most, opens } = this.#groups.leaves(single ? 1 : n, this.#held.length);
    this.#groups.reopen();
    const taken = most > 0 ? this.#take(most) : [];
    this.#groups.start(taken.length);
    const entries = taken.map((entry) => this.#lease(entry, worker));
    this.#groups.tidy();
    if (single && entries.length > 0)
      return { status: 'ok', entries, more: false, nextAt: this.breaker.letThrough(entries[0]!.lease.token) };
    const waits = this.tasks.length + this.#lines.size > 0 || this.#groups.waiting;
    const spent = taken.length === most && (most < n || opens !== undefined);
    const times = [this.#nextAt(), waits && spent ? opens : undefined, ...this.#groups.rests].filter(
      (at) => at !== undefined,
    );
    return { status: 'ok', entries, more: waits && !spent, nextAt: times.length > 0 ? Math.min(...times) : undefined };
  }

  #take(n: number): Ready[] {
    const line = (most: number, isWanted: (priority: number) => boolean) =>
      this.#lines.take(most, isWanted).map((job): Ready => ({ job }));
    const high = line(n, (priority) => priority > 0);
    const refs = this.#lines.lengthOf(0);
    const half = (whole: number, turns: number) =>
      Math.floor(whole / 2) + (whole % 2 === 1 ? Math.floor(this.#claims / turns) % 2 : 0);
    const turns = this.#groups.lined ? 2 : 1;
    const wanted = n - high.length;
    const most = Math.max(half(wanted, 1), wanted - this.tasks.length - refs);
    const grouped = this.#groups.take(most).map((job): Ready => ({ job }));
    const want = wanted - grouped.length;
    const raw = this.tasks
      .take(Math.min(want, Math.max(half(want, turns), want - refs)))
      .map((task): Ready => ({ task }));
    const middle = line(want - raw.length, (priority) => priority === 0);
    const low = line(want - raw.length - middle.length, (priority) => priority < 0);
    const mixed = Array.from({ length: Math.max(raw.length, middle.length) }, (_x, i) => [raw[i], middle[i]]).flat();
    return [...high, ...grouped, ...mixed.filter((entry) => entry !== undefined), ...low];
  }

  #lease(entry: Ready, worker: string): Entry {
    this.#claims += 1;
    const { job } = entry;
    const lease: Lease = { worker, token: `model.${this.#claims}`, id: job?.id };
    this.#held.push({ lease, entry, seq: this.#claims });
    if (!job) {
      this.tasks.lock(entry.task!, lease.token);
      return { lease, task: entry.task! };
    }
    this.#to(job, 'active');
    job.attempt += 1;
    this.log.tell('started', job.id, String(job.attempt));
    const { unique, reservation } = job.spec;
    if (unique?.scope === 'waiting') this.#unlock(job);
    if (reservation > 0) this.#reserved.set(job.id, this.clock() + reservation);
    return { lease, job: { ...job } };
  }

  /** Tasks that are finished by hand do not count for the breaker. */
  settle(settlements: readonly Settlement[], byHand = false): boolean[] {
    const fronts: { held: Held; settlement: Settlement }[] = [];
    const ended: Record_[] = [];
    const freed: Record_[] = [];
    const applied = settlements.map((settlement) => {
      const at = this.#held.findIndex(
        (held) => held.lease.token === settlement.lease.token && held.lease.id === settlement.lease.id,
      );
      if (at < 0) return false;
      const [held] = this.#held.splice(at, 1);
      const { outcome: move, record } = settlement;
      let { job } = held!.entry;
      if (job) freed.push(job);
      if (!job) this.tasks.unlock(held!.entry.task!, held!.lease.token, move.to === 'ready' && !record);
      if (!job && record) {
        job = {
          ...record,
          queue: this.queue,
          state: 'active',
          attempt: 1,
          crashes: 0,
          createdAt: this.clock(),
          needsLeft: new Set(),
          order: 0,
        };
        this.#jobs.set(record.id, job);
      }
      if (!byHand) this.breaker.settled(move, held!.lease.token);
      if (job) {
        this.log.tell(...endOf(job.id, move));
        this.#reserved.delete(job.id);
        job.attempt = move.attempt;
        job.crashes = move.crashes;
        if (move.to === 'scheduled') {
          this.#to(job, 'scheduled');
          this.#groups.hold(job);
          job.runAt = this.clock() + move.delay;
        } else if (move.to !== 'ready') {
          this.#to(job, move.to);
          this.#unlockAtEnd(job);
          ended.push(job);
        }
      }
      if (move.to === 'ready') fronts.push({ held: { ...held!, entry: { ...held!.entry, job } }, settlement });
      return true;
    });
    this.breaker.tell();
    for (const job of freed) this.#groups.release(job);
    fronts.sort((a, b) => b.held.seq - a.held.seq);
    for (const { held } of fronts) {
      if (held.entry.job) {
        this.#groups.hold(held.entry.job);
        this.#enqueue(held.entry.job, true);
      } else this.tasks.giveBack(held.entry.task!);
    }
    this.#tell(ended);
    return applied;
  }

  /** Records the progress of a job with a valid lease. */
  recordProgress(lease: Lease, progress: string): boolean {
    const held = this.#held.find((one) => one.lease.token === lease.token);
    if (!held?.entry.job) return false;
    held.entry.job.progress = progress;
    this.log.tell('progress', held.entry.job.id, progress);
    return true;
  }

  sweep({ lease }: SweepOptions): LostEntry[] {
    const now = this.clock();
    const swept = this.#swept;
    const stalled = swept !== undefined && now - swept > lease;
    this.#swept = now;
    this.#promote();
    for (const [key, { until }] of this.#keys) if (until > 0 && until <= now) this.#keys.delete(key);
    const late_ = stalled ? -1 : now;
    const sleepy = [...this.#sessions]
      .filter(([, deadline]) => deadline >= 0 && deadline <= now)
      .map(([worker]) => worker);
    const dead = [...this.#sessions].filter(([, deadline]) => deadline <= late_).map(([worker]) => worker);
    let late = [...this.#reserved].filter(([, deadline]) => deadline <= now).map(([id]) => id);
    if (stalled) {
      for (const worker of sleepy) this.#sessions.set(worker, now + lease);
      for (const id of late) this.#reserved.set(id, now + lease);
      late = [];
    }
    if (swept !== undefined && swept - now > lease)
      for (const [worker, deadline] of this.#sessions) if (deadline > swept) this.#sessions.set(worker, now + lease);
    const lost: LostEntry[] = [];
    const of = (worker: string) => this.#held.filter((held) => held.lease.worker === worker);
    for (const worker of dead) {
      if (of(worker).length === 0) this.#sessions.delete(worker);
      else this.#sessions.set(worker, -1);
    }
    const corpses = this.#held.filter((held) => dead.includes(held.lease.worker)).sort((a, b) => b.seq - a.seq);
    for (const { lease: of_, entry } of corpses) {
      lost.push(
        entry.job
          ? { lease: of_, job: { ...entry.job }, why: 'worker' }
          : { lease: of_, task: entry.task!, why: 'worker' },
      );
    }
    for (const id of late) {
      const held = this.#held.find((one) => one.lease.id === id)!;
      lost.push({ lease: held.lease, job: { ...held.entry.job! }, why: 'reservation' });
    }
    return lost;
  }

  cancel(id: string): boolean {
    const job = this.#jobs.get(id);
    if (!job || isTerminal(job.state)) return false;
    this.#endAnywhere(job, 'cancelled');
    return true;
  }

  /** Success without a token: for an active job, or for one that was delivered and waits for its retry. */
  reportSuccess(id: string): boolean {
    const job = this.#jobs.get(id);
    if (!job) return false;
    const waits = (job.state === 'scheduled' || job.state === 'ready') && job.attempt > 0;
    if (job.state !== 'active' && !waits) return false;
    this.breaker.succeeded(this.#held.find((held) => held.entry.job === job)?.lease.token);
    this.#endAnywhere(job, 'done');
    return true;
  }

  #endAnywhere(job: Record_, state: 'done' | 'cancelled'): void {
    this.#lines.withdraw(job);
    this.#groups.withdraw(job);
    if (job.state === 'active') this.#groups.release(job);
    else this.#groups.letGo(job);
    this.#held = this.#held.filter((held) => held.entry.job !== job);
    this.#reserved.delete(job.id);
    this.#to(job, state);
    this.log.tell(state, job.id);
    this.breaker.tell();
    this.#unlockAtEnd(job);
    this.#tell([job]);
  }

  remove(id: string): boolean {
    const job = this.#jobs.get(id);
    if (!job || !isTerminal(job.state)) return false;
    return this.#jobs.delete(id);
  }

  update(id: string, { priority, delay, payload }: JobChanges): State | undefined {
    const job = this.#jobs.get(id);
    if (!job || !['blocked', 'scheduled', 'ready'].includes(job.state)) return job?.state;
    const was = job.state;
    if (payload !== undefined) job.payload = payload;
    this.log.tell('changed', id);
    if (delay === undefined && (priority === undefined || priority === job.priority)) return was;
    const now = this.clock();
    const time = delay === undefined ? (was === 'ready' ? now : job.runAt!) : now + delay;
    if (was === 'ready') for (const line of [this.#lines, this.#groups]) line.withdraw(job);
    job.priority = priority ?? job.priority;
    if (was === 'blocked' || time > now) job.runAt = time;
    if (was === 'ready' && time > now) this.#to(job, 'scheduled');
    if (was !== 'blocked' && time <= now) this.#enqueue(job, false);
    return was;
  }

  rerun(id: string, from: readonly Terminal[]): boolean {
    const job = this.#jobs.get(id);
    if (!job || !(from as readonly State[]).includes(job.state)) return false;
    job.attempt = 0;
    job.crashes = 0;
    this.log.tell('revived', job.id);
    this.#enqueue(job, false);
    return true;
  }

  pause(paused: boolean): void {
    this.#paused = paused;
    if (paused) return;
    this.breaker.close();
    this.breaker.tell();
  }

  get(id: string): Job | undefined {
    return this.#jobs.get(id);
  }

  count(): Counts {
    const counts: Counts = { blocked: 0, scheduled: 0, ready: 0, active: 0, done: 0, dead: 0, cancelled: 0 };
    for (const job of this.#jobs.values()) counts[job.state] += 1;
    counts.ready += this.tasks.length;
    counts.active += this.#held.filter((held) => !held.entry.job).length;
    return counts;
  }

  #to(job: Record_, state: State): void {
    if (!isLegal(job.state, state)) throw new Error(`illegal: ${job.state} to ${state}`);
    job.state = state;
  }

  #enqueue(job: Record_, front: boolean): void {
    if (job.state !== 'ready') this.#to(job, 'ready');
    (job.spec.group === undefined ? this.#lines : this.#groups).enter(job, front);
  }

  #promote(): void {
    const due = [...this.#jobs.values()].filter((job) => job.state === 'scheduled' && job.runAt! <= this.clock());
    due.sort((a, b) => a.runAt! - b.runAt! || (a.id < b.id ? -1 : 1));
    for (const job of due) this.#enqueue(job, false);
  }

  #nextAt(): number | undefined {
    const times = [...this.#jobs.values()].filter((job) => job.state === 'scheduled').map((job) => job.runAt!);
    return times.length > 0 ? Math.min(...times) : undefined;
  }

  #tell(ended: Record_[]): void {
    const work = [...ended];
    for (const up of work) {
      const downs = [...this.#jobs.values()].filter((job) => job.state === 'blocked' && job.needsLeft.has(up.id));
      downs.sort((a, b) => (a.id < b.id ? -1 : 1));
      for (const down of downs) {
        const policy = down.spec.needs!.find((need) => need.id === up.id)!.on;
        down.needsLeft.delete(up.id);
        if (up.state !== 'done' && policy === 'success') {
          this.#to(down, 'cancelled');
          this.log.tell('cancelled', down.id);
          this.#unlockAtEnd(down);
          work.push(down);
        } else if (down.needsLeft.size === 0) {
          if (down.runAt! > this.clock()) this.#to(down, 'scheduled');
          else this.#enqueue(down, false);
        }
      }
    }
  }

  #unlockAtEnd(job: Record_): void {
    if (job.spec.unique && job.spec.unique.scope !== 'window') this.#unlock(job);
  }

  #unlock(job: Record_): void {
    const { key } = job.spec.unique!;
    if (this.#keys.get(key)?.id === job.id) this.#keys.delete(key);
  }
}

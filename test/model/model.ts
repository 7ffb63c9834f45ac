import { type Entry, isTerminal, type Job, type Lease, type NewJob, type State } from '../../dist/job/job.js';
import { isLegal } from '../../dist/job/states.js';
import type { AddOutcome, Beat, Claim, Counts, Lost, Pace, Settlement, SweepOptions } from '../../dist/store/store.js';

/**
 * The contract in plain data: what a queue is, with no thought for speed. The stores have to agree with it step by step.
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

/** A group's line and what is known of it; see the schema for the shelves. */
interface Group {
  line: Record_[];
  holds: number;
  opened: number;
  started: number;
  shelf: 'none' | 'turns' | 'full' | 'rested';
  rests: number;
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
  /** Lines by priority, first to run first. */
  readonly #lines = new Map<number, Record_[]>();
  readonly #groups = new Map<string, Group>();
  /** Groups that may go on, next first. */
  #turns: string[] = [];
  #pace: Pace = {};
  #window = { opened: 0, started: 0 };
  /** Unique raw tasks by their text: the token of the lease that carries the seal, '' while it waits. */
  readonly #seals = new Map<string, string>();
  #tasks: Uint8Array[] = [];
  #held: Held[] = [];
  #claims = 0;
  #paused = false;
  #swept: number | undefined;

  constructor(
    private readonly queue: string,
    private readonly clock: () => number,
  ) {}

  push(tasks: readonly Uint8Array[]): boolean {
    this.#tasks.push(...tasks);
    return true;
  }

  /** All tasks that wait, next one first. */
  get tasks(): string[] {
    return this.#tasks.map(textOf);
  }

  enqueueUnique(task: Uint8Array): boolean {
    if (this.#seals.has(textOf(task))) return false;
    this.#seals.set(textOf(task), '');
    return this.push([task]);
  }

  take({ worker, lease }: Beat, n: number): { status: string; entries: Entry[] } {
    const deadline = this.#sessions.get(worker);
    if (deadline === undefined || deadline < 0) return { status: 'lost', entries: [] };
    this.#sessions.set(worker, Math.max(deadline, this.clock() + lease));
    if (this.#paused) return { status: 'paused', entries: [] };
    const entries = this.#tasks.splice(0, this.#leaves(n).most).map((task) => this.#lease({ task }, worker));
    this.#window.started += entries.length;
    return { status: 'ok', entries };
  }

  drop(text: string): number {
    const before = this.#tasks.length;
    this.#tasks = this.#tasks.filter((task) => textOf(task) !== text);
    if (this.#seals.get(text) === '') this.#seals.delete(text);
    return before - this.#tasks.length;
  }

  clear(): void {
    this.#tasks = [];
    for (const [text, token] of this.#seals) if (token === '') this.#seals.delete(text);
  }

  doom(worker: string): boolean {
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

  #addOne(job: NewJob): AddOutcome {
    if (this.#jobs.has(job.id)) return { outcome: 'duplicate', id: job.id };
    const { unique, needs = [] } = job.spec;
    const now = this.clock();
    const holder = unique && this.#keys.get(unique.key);
    if (holder && (holder.until === 0 || holder.until > now))
      return { outcome: this.#renew(job, this.#jobs.get(holder.id)), id: holder.id };
    const at = job.at ?? now + (job.delay ?? 0);
    // An upstream of the same batch that was refused leaves nothing to wait for.
    const ups = needs.map((need) => ({ need, up: this.#jobs.get(need.id) ?? { state: 'cancelled' as State } }));
    const record: Record_ = {
      ...{ queue: this.queue, id: job.id, payload: job.payload, priority: job.priority, spec: job.spec },
      ...{ state: 'ready' as State, attempt: 0, crashes: 0, createdAt: now, order: 0 },
      needsLeft: new Set(ups.filter(({ up }) => !isTerminal(up.state)).map(({ need }) => need.id)),
    };
    this.#jobs.set(job.id, record);
    const failed = ups.some(
      ({ need, up }) => need.on === 'success' && (up.state === 'dead' || up.state === 'cancelled'),
    );
    if (failed) {
      record.state = 'cancelled';
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
    return mode === 'replace' ? 'replaced' : 'extended';
  }

  setPace(pace: Pace): void {
    this.#pace = pace;
  }

  join(worker: string, lease: number): void {
    this.#swept ??= this.clock();
    this.#sessions.set(worker, this.clock() + lease);
  }

  beat(worker: string, lease: number): boolean {
    if ((this.#sessions.get(worker) ?? -1) < 0) return false;
    this.#sessions.set(worker, this.clock() + lease);
    return true;
  }

  claim({ worker, lease }: Beat, n: number): Claim {
    const nothing = { entries: [], more: false };
    const deadline = this.#sessions.get(worker);
    if (deadline === undefined || deadline < 0) return { status: 'lost', ...nothing };
    this.#sessions.set(worker, Math.max(deadline, this.clock() + lease));
    if (this.#paused) return { status: 'paused', ...nothing };
    this.#promote();
    const { most, opens } = this.#leaves(n);
    this.#reopen();
    const taken = most > 0 ? this.#take(most) : [];
    this.#window.started += taken.length;
    const entries = taken.map((entry) => this.#lease(entry, worker));
    while (this.#turns.length > 0 && this.#groups.get(this.#turns[0]!)!.line.length === 0)
      this.#groups.get(this.#turns.shift()!)!.shelf = 'none';
    const waits = this.#ungrouped() > 0 || this.#turns.length > 0;
    const spent = taken.length === most && (most < n || opens !== undefined);
    const times = [this.#nextAt(), waits && spent ? opens : undefined, ...this.#rests()].filter(
      (at) => at !== undefined,
    );
    return { status: 'ok', entries, more: waits && !spent, nextAt: times.length > 0 ? Math.min(...times) : undefined };
  }

  /** What the pace of the queue leaves of `n`. */
  #leaves(n: number): { most: number; opens?: number } {
    const { concurrency, rate } = this.#pace;
    let most = concurrency === undefined ? n : Math.min(n, concurrency - this.#held.length);
    if (!rate) return { most: Math.max(0, most) };
    if (this.#window.started === 0 || this.clock() >= this.#window.opened + rate.per)
      this.#window = { opened: this.clock(), started: 0 };
    const left = rate.count - this.#window.started;
    const opens = left <= most ? this.#window.opened + rate.per : undefined;
    most = Math.min(most, left);
    return { most: Math.max(0, most), opens };
  }

  #rests(): number[] {
    return [...this.#groups.values()].filter((group) => group.shelf === 'rested').map((group) => group.rests);
  }

  #reopen(): void {
    const due = [...this.#groups].filter(([, group]) => group.shelf === 'rested' && group.rests <= this.clock());
    due.sort(([a, x], [b, y]) => x.rests - y.rests || (a < b ? -1 : 1));
    for (const [name] of due) this.#seat(name);
  }

  #windowOf(group: Group): [number, number] {
    const rate = this.#pace.group?.rate;
    return !rate || group.started === 0 || this.clock() >= group.opened + rate.per
      ? [this.clock(), 0]
      : [group.opened, group.started];
  }

  #shelfOf(group: Group): Group['shelf'] {
    const { concurrency, rate } = this.#pace.group ?? {};
    if (group.line.length === 0) return 'none';
    if (concurrency !== undefined && group.holds >= concurrency) return 'full';
    if (rate && this.#windowOf(group)[1] >= rate.count) return 'rested';
    return 'turns';
  }

  #seat(name: string): void {
    const group = this.#groups.get(name)!;
    group.shelf = this.#shelfOf(group);
    if (group.shelf === 'turns') this.#turns.push(name);
    if (group.shelf === 'rested') group.rests = group.opened + this.#pace.group!.rate!.per;
  }

  #takeGroups(want: number): Ready[] {
    const out: Ready[] = [];
    while (out.length < want && this.#turns.length > 0) {
      const name = this.#turns.shift()!;
      const group = this.#groups.get(name)!;
      if (this.#shelfOf(group) === 'turns') {
        out.push({ job: group.line.shift()! });
        const [opened, started] = this.#windowOf(group);
        Object.assign(group, { holds: group.holds + 1, opened, started: started + 1 });
      }
      this.#seat(name);
    }
    return out;
  }

  #release(job: Record_ | undefined): void {
    const group = job?.spec.group === undefined ? undefined : this.#groups.get(job.spec.group);
    if (!group) return;
    group.holds -= 1;
    if (group.shelf === 'full') this.#seat(job!.spec.group!);
  }

  #take(n: number): Ready[] {
    const priorities = [...this.#lines.keys()].sort((a, b) => b - a);
    const line = (keep: (priority: number) => boolean, most: number): Ready[] => {
      const out: Ready[] = [];
      for (const priority of priorities.filter(keep)) {
        while (out.length < most && this.#lines.get(priority)!.length > 0)
          out.push({ job: this.#lines.get(priority)!.shift()! });
      }
      return out;
    };
    const high = line((priority) => priority > 0, n);
    const refs = this.#lines.get(0)?.length ?? 0;
    const half = (whole: number, turns: number) =>
      Math.floor(whole / 2) + (whole % 2 === 1 ? Math.floor(this.#claims / turns) % 2 : 0);
    const turns = [...this.#groups.values()].some((group) => group.line.length > 0) ? 2 : 1;
    const wanted = n - high.length;
    const grouped = this.#takeGroups(Math.max(half(wanted, 1), wanted - this.#tasks.length - refs));
    const want = wanted - grouped.length;
    const share = Math.min(this.#tasks.length, Math.max(half(want, turns), want - refs), want);
    const raw = this.#tasks.splice(0, share).map((task): Ready => ({ task }));
    const middle = line((priority) => priority === 0, want - raw.length);
    const low = line((priority) => priority < 0, want - raw.length - middle.length);
    const mixed = Array.from({ length: Math.max(raw.length, middle.length) }, (_x, i) => [raw[i], middle[i]]).flat();
    return [...high, ...grouped, ...mixed.filter((entry) => entry !== undefined), ...low];
  }

  #lease(entry: Ready, worker: string): Entry {
    this.#claims += 1;
    const { job } = entry;
    const lease: Lease = { worker, token: `model.${this.#claims}`, id: job?.id };
    this.#held.push({ lease, entry, seq: this.#claims });
    if (!job) {
      if (this.#seals.get(textOf(entry.task!)) === '') this.#seals.set(textOf(entry.task!), lease.token);
      return { lease, task: entry.task! };
    }
    this.#to(job, 'active');
    job.attempt += 1;
    const { unique, reservation } = job.spec;
    if (unique?.scope === 'waiting') this.#unlock(job);
    if (reservation > 0) this.#reserved.set(job.id, this.clock() + reservation);
    return { lease, job: { ...job } };
  }

  settle(settlements: readonly Settlement[]): boolean[] {
    const fronts: { held: Held; settlement: Settlement }[] = [];
    const ended: Record_[] = [];
    const freed: Record_[] = [];
    const applied = settlements.map((settlement) => {
      const at = this.#held.findIndex(
        (held) => held.lease.token === settlement.lease.token && held.lease.id === settlement.lease.id,
      );
      if (at < 0) return false;
      const [held] = this.#held.splice(at, 1);
      const { move, record } = settlement;
      let { job } = held!.entry;
      if (job) freed.push(job);
      if (!job) this.#unseal(held!, move.to === 'ready' && !record);
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
      if (job) {
        this.#reserved.delete(job.id);
        job.attempt = move.attempt;
        job.crashes = move.crashes;
        if (move.to === 'scheduled') {
          this.#to(job, 'scheduled');
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
    for (const job of freed) this.#release(job);
    fronts.sort((a, b) => b.held.seq - a.held.seq);
    for (const { held } of fronts) {
      if (held.entry.job) this.#enqueue(held.entry.job, true);
      else this.#tasks.unshift(held.entry.task!);
    }
    this.#tell(ended);
    return applied;
  }

  sweep({ lease }: SweepOptions): Lost[] {
    const now = this.clock();
    const stalled = this.#swept !== undefined && now - this.#swept > lease;
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
    const lost: Lost[] = [];
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

  /** Success without a token: of an active job, or of one that was delivered and waits for its retry. */
  report(id: string): boolean {
    const job = this.#jobs.get(id);
    if (!job) return false;
    const waits = (job.state === 'scheduled' || job.state === 'ready') && job.attempt > 0;
    if (job.state !== 'active' && !waits) return false;
    this.#endAnywhere(job, 'done');
    return true;
  }

  #endAnywhere(job: Record_, state: 'done' | 'cancelled'): void {
    this.#lines
      .get(job.priority)
      ?.splice(0, Number.POSITIVE_INFINITY, ...this.#lines.get(job.priority)!.filter((one) => one !== job));
    const group = job.spec.group === undefined ? undefined : this.#groups.get(job.spec.group);
    if (group) group.line = group.line.filter((one) => one !== job);
    if (job.state === 'active') this.#release(job);
    this.#held = this.#held.filter((held) => held.entry.job !== job);
    this.#reserved.delete(job.id);
    this.#to(job, state);
    this.#unlockAtEnd(job);
    this.#tell([job]);
  }

  remove(id: string): boolean {
    const job = this.#jobs.get(id);
    if (!job || !isTerminal(job.state)) return false;
    return this.#jobs.delete(id);
  }

  revive(id: string): boolean {
    const job = this.#jobs.get(id);
    if (job?.state !== 'dead') return false;
    job.attempt = 0;
    job.crashes = 0;
    this.#enqueue(job, false);
    return true;
  }

  pause(paused: boolean): void {
    this.#paused = paused;
  }

  get(id: string): Job | undefined {
    return this.#jobs.get(id);
  }

  count(): Counts {
    const counts: Counts = { blocked: 0, scheduled: 0, ready: 0, active: 0, done: 0, dead: 0, cancelled: 0 };
    for (const job of this.#jobs.values()) counts[job.state] += 1;
    counts.ready += this.#tasks.length;
    counts.active += this.#held.filter((held) => !held.entry.job).length;
    return counts;
  }

  #to(job: Record_, state: State): void {
    if (!isLegal(job.state, state)) throw new Error(`illegal: ${job.state} to ${state}`);
    job.state = state;
  }

  #enqueue(job: Record_, front: boolean): void {
    if (job.state !== 'ready') this.#to(job, 'ready');
    if (job.spec.group !== undefined) {
      this.#enterGroup(job, job.spec.group, front);
      return;
    }
    if (!this.#lines.has(job.priority)) this.#lines.set(job.priority, []);
    if (front) this.#lines.get(job.priority)!.unshift(job);
    else this.#lines.get(job.priority)!.push(job);
  }

  #enterGroup(job: Record_, name: string, front: boolean): void {
    const fresh: Group = { line: [], holds: 0, opened: 0, started: 0, shelf: 'none', rests: 0 };
    const group = this.#groups.get(name) ?? fresh;
    this.#groups.set(name, group);
    const behind = group.line.findIndex((one) => (front ? one.priority <= job.priority : one.priority < job.priority));
    group.line.splice(behind < 0 ? group.line.length : behind, 0, job);
    if (group.shelf === 'none') this.#seat(name);
  }

  #promote(): void {
    const due = [...this.#jobs.values()].filter((job) => job.state === 'scheduled' && job.runAt! <= this.clock());
    due.sort((a, b) => a.runAt! - b.runAt! || (a.id < b.id ? -1 : 1));
    for (const job of due) this.#enqueue(job, false);
  }

  #ungrouped(): number {
    return this.#tasks.length + [...this.#lines.values()].reduce((sum, line) => sum + line.length, 0);
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
          this.#unlockAtEnd(down);
          work.push(down);
        } else if (down.needsLeft.size === 0) {
          if (down.runAt! > this.clock()) this.#to(down, 'scheduled');
          else this.#enqueue(down, false);
        }
      }
    }
  }

  #unseal({ lease, entry }: Held, back: boolean): void {
    const text = textOf(entry.task!);
    if (this.#seals.get(text) !== lease.token) return;
    if (back) this.#seals.set(text, '');
    else this.#seals.delete(text);
  }

  #unlockAtEnd(job: Record_): void {
    if (job.spec.unique && job.spec.unique.scope !== 'window') this.#unlock(job);
  }

  #unlock(job: Record_): void {
    const { key } = job.spec.unique!;
    if (this.#keys.get(key)?.id === job.id) this.#keys.delete(key);
  }
}

function textOf(task: Uint8Array): string {
  return Buffer.from(task).toString();
}

import type { Job } from '../../dist/job/job.js';
import type { QueueLimits } from '../../dist/store/store.js';

/** The queue and state of a group; see the schema for the meaning of `shelf`. */
interface Group<J> {
  line: J[];
  holds: number;
  opened: number;
  started: number;
  shelf: 'none' | 'turns' | 'full' | 'rested';
  rests: number;
  /** In an ordered group: the job that has started, has not ended, and waits to go on. */
  held?: J;
}

/** The part of the model for limits: the rotation of groups, and how much the limits allow. */
export class Groups<J extends Job> {
  readonly #groups = new Map<string, Group<J>>();
  /** Groups that may start a job, next first. */
  #turns: string[] = [];
  #window = { opened: 0, started: 0 };
  limits: QueueLimits = {};

  constructor(private readonly clock: () => number) {}

  /** How many of `n` entries the limits of the queue allow while `held` are running. */
  leaves(n: number, held: number): { most: number; opens?: number } {
    const { concurrency, rate } = this.limits;
    let most = concurrency === undefined ? n : Math.min(n, concurrency - held);
    if (!rate) return { most: Math.max(0, most) };
    if (this.#isOver(this.#window, rate.per)) this.#window = { opened: this.clock(), started: 0 };
    const left = rate.count - this.#window.started;
    const opens = left <= most ? this.#window.opened + rate.per : undefined;
    most = Math.min(most, left);
    return { most: Math.max(0, most), opens };
  }

  /** Records that `count` entries have started. */
  start(count: number): void {
    this.#window.started += count;
  }

  /** Whether any group may start a job. */
  get waiting(): boolean {
    return this.#turns.length > 0;
  }

  /** Whether any group has waiting jobs, whatever its shelf. */
  get lined(): boolean {
    return [...this.#groups.values()].some((group) => group.line.length > 0);
  }

  /** When rate-limited groups may continue. */
  get rests(): number[] {
    return [...this.#groups.values()].filter((group) => group.shelf === 'rested').map((group) => group.rests);
  }

  reopen(): void {
    const due = [...this.#groups].filter(([, group]) => group.shelf === 'rested' && group.rests <= this.clock());
    due.sort(([a, x], [b, y]) => x.rests - y.rests || (a < b ? -1 : 1));
    for (const [name] of due) this.#seat(name);
  }

  enter(job: J, front: boolean): void {
    const name = job.spec.group!;
    const fresh: Group<J> = { line: [], holds: 0, opened: 0, started: 0, shelf: 'none', rests: 0 };
    const group = this.#groups.get(name) ?? fresh;
    this.#groups.set(name, group);
    const behind = group.line.findIndex((one) => (front ? one.priority <= job.priority : one.priority < job.priority));
    group.line.splice(behind < 0 ? group.line.length : behind, 0, job);
    if (group.shelf === 'none' || (group.shelf === 'full' && group.held === job)) this.#seat(name);
  }

  /** A job that has started waits again. */
  hold(job: J): void {
    const group = this.#of(job);
    if (group && this.limits.group?.ordered) group.held ??= job;
  }

  /** A waiting job has ended. */
  letGo(job: J): void {
    const group = this.#of(job);
    if (group?.held !== job) return;
    group.held = undefined;
    if (group.shelf === 'full') this.#seat(job.spec.group!);
  }

  withdraw(job: J): void {
    const group = this.#of(job);
    if (group) group.line = group.line.filter((one) => one !== job);
  }

  take(want: number): J[] {
    const out: J[] = [];
    while (out.length < want && this.#turns.length > 0) {
      const name = this.#turns.shift()!;
      const group = this.#groups.get(name)!;
      if (this.#shelfOf(group) === 'turns') {
        const job = group.held ?? group.line[0]!;
        group.held = undefined;
        group.line = group.line.filter((one) => one !== job);
        out.push(job);
        const [opened, started] = this.#windowOf(group);
        Object.assign(group, { holds: group.holds + 1, opened, started: started + 1 });
      }
      this.#seat(name);
    }
    return out;
  }

  /** Removes groups without waiting jobs from the head of the rotation. */
  tidy(): void {
    while (this.#turns.length > 0 && this.#groups.get(this.#turns[0]!)!.line.length === 0)
      this.#groups.get(this.#turns.shift()!)!.shelf = 'none';
  }

  /** The lease of a job has ended. */
  release(job: J): void {
    const group = this.#of(job);
    if (!group) return;
    group.holds -= 1;
    if (group.shelf === 'full') this.#seat(job.spec.group!);
  }

  #of(job: J): Group<J> | undefined {
    return job.spec.group === undefined ? undefined : this.#groups.get(job.spec.group);
  }

  #windowOf(group: Group<J>): [number, number] {
    const rate = this.limits.group?.rate;
    return !rate || this.#isOver(group, rate.per) ? [this.clock(), 0] : [group.opened, group.started];
  }

  /** A window that opens later than now began before the clock was set back. */
  #isOver({ opened, started }: { opened: number; started: number }, per: number): boolean {
    return started === 0 || this.clock() < opened || this.clock() >= opened + per;
  }

  #shelfOf(group: Group<J>): Group<J>['shelf'] {
    const { concurrency, rate, ordered } = this.limits.group ?? {};
    if (group.line.length === 0) return 'none';
    if (ordered && (group.holds > 0 || (group.held && !group.line.includes(group.held)))) return 'full';
    if (concurrency !== undefined && group.holds >= concurrency) return 'full';
    if (rate && this.#windowOf(group)[1] >= rate.count) return 'rested';
    return 'turns';
  }

  #seat(name: string): void {
    const group = this.#groups.get(name)!;
    group.shelf = this.#shelfOf(group);
    if (group.shelf === 'turns') this.#turns.push(name);
    if (group.shelf === 'rested') group.rests = group.opened + this.limits.group!.rate!.per;
  }
}

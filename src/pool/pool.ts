import { CroreError } from '../errors.js';
import type { CapturedOutput } from '../process/captured-output.js';
import { now } from '../process/clock.js';
import { whenDrained } from '../process/drained.js';
import { Prefetch } from '../worker/prefetch.js';
import type { Call } from './call.js';
import { type MemberSetup, PoolMember } from './pool-member.js';

export interface PoolSetup extends MemberSetup {
  /** How many processes or threads there may be. */
  size: number;
  /** Whether a process or thread is replaced after a call with this outcome; default: never. */
  isWorn?: (member: PoolMember, outcome: unknown) => boolean;
}

/** Waits before the next start after modules that could not be loaded, in milliseconds. */
const FIRST_PAUSE = 100;
const LONGEST_PAUSE = 10_000;
/** How long a call that was sent ahead may wait for its start, in milliseconds. */
const AHEAD_FOR = 100;
/** Calls that no member takes go back to where they came from when no call has ended for so long. */
const STALE = 200;
const WATCH = 50;

/**
 * Runs calls in processes or threads: one at a time in each, started on demand and reused. While calls are short, some are sent ahead
 * to members that are busy. What waits there behind a call that turns slow, or in a member that dies, goes to another member.
 */
export class Pool {
  readonly #members = new Set<PoolMember>();
  /** Calls without a member, in order: returned ones first. */
  readonly #pending: Call[] = [];
  #order = 0;
  #progressAt = 0;
  /** How many calls are sent ahead to each member. */
  readonly #window = new Prefetch(1);
  #watch: NodeJS.Timeout | undefined;
  #failedStarts = 0;
  #nextStart = 0;
  #startTimer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(private readonly setup: PoolSetup) {}

  /** How many calls it would have if it took as many as it can now. */
  get capacity(): number {
    const { ahead } = this.#window;
    let sum = this.#pending.length;
    let alive = 0;
    for (const member of this.#members) {
      if (member.isDead) continue;
      alive += 1;
      sum += member.takesAhead(ahead) ? 1 + ahead : Math.max(1, member.calls.length);
    }
    return sum + Math.max(0, this.setup.size - alive);
  }

  run(call: Call): void {
    call.order = ++this.#order;
    call.since = now();
    this.#pending.push(call);
    this.#dispatch();
  }

  /** The call has been asked to stop. */
  stop(call: Call, reason: Error): void {
    const place = this.#pending.indexOf(call);
    if (place < 0) {
      call.member?.stop(call, reason);
      return;
    }
    this.#pending.splice(place, 1);
    call.refused(reason);
  }

  /** Ends all processes and threads, busy or not. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#watch);
    clearTimeout(this.#startTimer);
    this.#refuse(this.#pending.splice(0));
    await Promise.all([...this.#members].map((member) => member.end()));
  }

  #dispatch(): void {
    while (this.#pending.length > 0) {
      const member = this.#idle() ?? this.#startOne() ?? this.#leastBusy();
      if (!member?.isIdle) this.#watchMembers();
      if (!member) return;
      member.take(this.#pending.shift()!, now() + AHEAD_FOR);
    }
  }

  #idle(): PoolMember | undefined {
    for (const member of this.#members) if (member.isIdle) return member;
    return undefined;
  }

  #startOne(): PoolMember | undefined {
    const slots = new Set<number>();
    for (const member of this.#members) if (!member.isDead) slots.add(member.slot);
    if (slots.size >= this.setup.size || this.#mustPause()) return undefined;
    let slot = 0;
    while (slots.has(slot)) slot++;
    const member: PoolMember = new PoolMember(
      this.setup,
      {
        ended: (call, outcome, output) => this.#ended(member, call, outcome, output),
        returned: (calls) => this.#returned(calls),
        changed: () => this.#changed(member),
        unloadable: (call, why, cause) => this.#unloadable(call, why, cause),
      },
      slot,
    );
    this.#members.add(member);
    return member;
  }

  #leastBusy(): PoolMember | undefined {
    const { ahead } = this.#window;
    let best: PoolMember | undefined;
    for (const member of this.#members) {
      if ((!best || member.calls.length < best.calls.length) && member.takesAhead(ahead)) best = member;
    }
    return best;
  }

  #ended(member: PoolMember, call: Call, outcome: unknown, output: CapturedOutput): void {
    this.#failedStarts = 0;
    this.#progressAt = now();
    const took = call.ended(outcome, output);
    if (took !== undefined) this.#window.took(took);
    if (member.isIdle && this.setup.isWorn?.(member, outcome)) void member.end();
  }

  #changed(member: PoolMember): void {
    if (member.isDead && member.calls.length === 0) this.#members.delete(member);
    this.#dispatch();
  }

  /** They go to others, ahead of what came later. */
  #returned(calls: Call[]): void {
    const lost = calls.filter((call) => call.stopped || this.#isClosed);
    const again = calls.filter((call) => !lost.includes(call));
    for (const call of again) {
      call.member = undefined;
      call.since = now();
    }
    this.#pending.push(...again);
    this.#pending.sort((a, b) => a.order - b.order);
    this.#refuse(lost);
    if (again.length > 0) this.#watchMembers();
  }

  #refuse(calls: Call[]): void {
    for (const call of calls) call.refused(call.stopped ?? new CroreError('CLOSED', 'the worker has been closed'));
  }

  #watchMembers(): void {
    if (!this.#isClosed) this.#watch ??= setInterval(() => this.#check(), WATCH).unref();
  }

  /** Looks for calls that wait behind slow ones, and for returned ones that nobody takes. */
  #check(): void {
    const time = now();
    whenDrained(() => {
      const late = [...this.#members].flatMap((member) => (member.isDead ? [] : member.takeBack(time)));
      if (late.length > 0) this.#window.stalled(AHEAD_FOR);
      this.#returned(late);
      this.#dispatch();
    });
    if (time - this.#progressAt > STALE && time > this.#nextStart) this.#giveBack(time - STALE);
    const isQuiet = ![...this.#members].some((member) => member.calls.length > 1);
    if (!isQuiet || this.#pending.length > 0) return;
    clearInterval(this.#watch);
    this.#watch = undefined;
  }

  /** If one has waited since before that time, all go back, to keep their order. */
  #giveBack(time: number): void {
    if (!this.#pending.some(({ since }) => since < time)) return;
    for (const call of this.#pending.splice(0)) call.givenBack();
  }

  /** A module that fails once will mostly fail again: the calls fail with it, but not as fast as processes can start. */
  #unloadable(call: Call | undefined, why: string, cause: unknown): void {
    const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#failedStarts);
    this.#failedStarts = Math.min(this.#failedStarts + 1, 10);
    this.#nextStart = now() + pause;
    call?.unloadable(why, cause);
  }

  #mustPause(): boolean {
    const pause = this.#nextStart - now();
    if (pause <= 0) return false;
    clearTimeout(this.#startTimer);
    this.#startTimer = setTimeout(() => this.#dispatch(), pause + 1);
    return true;
  }
}

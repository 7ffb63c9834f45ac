import type { ChildExit } from '../process/child.js';
import { now, Pause } from '../process/clock.js';
import { type Log, openAppend, showItem, writeLine } from '../process/log.js';
import type { Options } from './args.js';
import type { ChildLauncher } from './child-launcher.js';
import { type HeldLock, LockRefresher, type Loss } from './lock-refresher.js';
import { isPassing } from './redis/failure.js';
import { type Found, Idle, longestPause, Pass } from './ring-pass.js';
import type { RunningChild } from './running-child.js';
import type { RingStore } from './store.js';

const LOST = 75;
const FOREVER = 2 ** 31 - 1;
/** Timeout of every call to the store, in milliseconds. */
const PATIENCE = 5000;

/** Goes around a ring and keeps up to `jobs` children working on its items, until something ends the run. */
export class Runner {
  private readonly refresher: LockRefresher;
  private readonly idle: Idle;
  private readonly works = new Set<RunningChild>();
  private readonly refused = new Set<string>();
  private readonly pause = new Pause();
  private launcher: ChildLauncher | undefined;
  private readonly joblog: number | undefined;
  private readonly most: number;
  private pass: Pass | undefined;
  private taken = 0;
  private code: number | undefined;
  private stopped = false;
  private connected = false;
  private away = false;

  constructor(
    private readonly options: Options,
    private readonly store: RingStore,
    private readonly log: Log,
  ) {
    const { expiryMs, joblog, maxItems, continuous, jobs } = options;
    const events = {
      retaken: (lease: HeldLock) => this.retaken(lease),
      lost: (l: HeldLock, why: Loss) => this.lost(l, why),
    };
    this.refresher = new LockRefresher(store, expiryMs, events);
    this.idle = new Idle(longestPause(expiryMs));
    this.joblog = joblog === '' ? undefined : openAppend(joblog, 'job log');
    this.most = maxItems || (continuous ? Number.POSITIVE_INFINITY : jobs);
  }

  /** Resolves with the exit code when all children have exited and all locks are released. */
  async run(): Promise<number> {
    try {
      await this.walk();
    } catch (error) {
      this.log((error as Error).message);
      this.stop(2);
    }
    while (this.works.size > 0) await this.pause.sleep(FOREVER);
    this.launcher?.close();
    return this.code ?? 0;
  }

  /** TERM, INT, HUP and QUIT end the run and go to the whole group, as from a terminal; the others only to the child. */
  signal(name: NodeJS.Signals, number: number, again: boolean): void {
    const ends = name !== 'SIGUSR1' && name !== 'SIGUSR2';
    for (const { child } of this.works) {
      if (!ends) child.signal(name);
      else child.signalGroup(again ? 'SIGKILL' : name);
    }
    if (!ends) return;
    if (this.works.size > 0) this.stop();
    else this.stop(128 + number);
    // We hold nothing for which a slow answer could still be useful.
    if (this.works.size === 0) setTimeout(() => this.store.close(), 1000).unref();
  }

  /** Ctrl-Z: stopping the wrapper also stops its children, or they would go on without a lock. */
  suspend(): void {
    for (const { child } of this.works) child.signalGroup('SIGSTOP');
  }

  /** After a stop, the locks are checked first; only then do stopped children continue. */
  async resume(): Promise<void> {
    await this.refresher.check();
    for (const { child } of this.works) child.signalGroup('SIGCONT');
  }

  private stop(code?: number): void {
    this.stopped = true;
    if (code === LOST) this.code = code;
    else this.code ||= code;
    this.pause.wake();
  }

  private async walk(): Promise<void> {
    while (!this.stopped) {
      if (this.works.size >= this.options.jobs || this.taken >= this.most) {
        if (this.works.size === 0) return;
        await this.pause.sleep(FOREVER);
        continue;
      }
      const found = await this.look();
      if (found && this.stopped) await this.release(found, 0);
      else if (found) await this.begin(found);
      else if (!this.options.continuous) return;
      else await this.pause.sleep(this.idle.next());
    }
  }

  /** The next free item. A single run makes only one pass; a continuous one starts another after each find. */
  private async look(): Promise<Found | undefined> {
    this.pass ??= new Pass(this.store, PATIENCE, this.options.expiryMs);
    try {
      const found = await this.pass.next();
      this.connected = true;
      if (this.away) this.log('the store answers again');
      this.away = false;
      if (!found && this.options.continuous) this.pass = undefined;
      return found;
    } catch (error) {
      this.pass = undefined;
      if (this.stopped) return undefined;
      if (!this.options.continuous || !this.connected || !isPassing(error)) throw error;
      if (!this.away) this.log(`${(error as Error).message}; waiting for it`);
      this.away = true;
      return undefined;
    }
  }

  private async begin(found: Found): Promise<void> {
    // Loaded only for the first child: most single runs find nothing to do.
    if (!this.launcher) {
      const { ChildLauncher } = await import('./child-launcher.js');
      this.launcher = new ChildLauncher(this.options, this.log);
    }
    const plan = this.launcher.plan(found.item);
    if (typeof plan === 'string') return this.refuse(found, plan);
    if (this.options.continuous) this.pass = undefined;
    this.idle.reset();
    this.taken += 1;
    const work = this.launcher.start(plan, this.refresher.hold(found, found.asked));
    this.works.add(work);
    void this.finish(work);
  }

  /** The item stays in the ring for a process that can use it. It is reported once, not on every pass. */
  private async refuse(found: Found, why: string): Promise<void> {
    await this.release(found, 0);
    const shown = showItem(found.item);
    if (this.refused.has(shown)) return;
    if (this.refused.size < 1000) this.refused.add(shown);
    this.log(`error: item ${shown} is skipped: ${why}`);
  }

  private async finish(work: RunningChild): Promise<void> {
    const outcome = await work.outcome();
    const rest = outcome.failure ? 0 : this.options.restMs;
    this.record(work, outcome);
    this.refresher.drop(work.lease);
    await this.release(work.lease, rest, work.lease.loss === undefined);
    this.works.delete(work);
    this.conclude(work, outcome);
    this.pause.wake();
  }

  private conclude(work: RunningChild, { code, failure }: ChildExit): void {
    const walksOn = this.most > 1 && !this.stopped && !failure && this.options.exitCodes.includes(code);
    if (work.ending === 'lost') this.stop(LOST);
    else if (!walksOn) this.stop(code);
  }

  private record(work: RunningChild, { code, signal, failure }: ChildExit): void {
    const item = showItem(work.lease.item);
    const ms = now() - work.started;
    const seconds = (ms / 1000).toFixed(3);
    this.log(failure || `${item}: ${signal ? `killed by ${signal}` : `exit ${code}`} after ${seconds} s`);
    if (this.joblog === undefined) return;
    const whole = showItem(work.lease.item, Number.POSITIVE_INFINITY);
    writeLine(this.joblog, `${[whole, new Date(Date.now() - ms).toISOString(), seconds, code, signal].join('\t')}\n`);
  }

  /** A lock that cannot be released expires, so a failure only gets a second try and a log line. */
  private async release(held: Found | HeldLock, rest: number, ours = true): Promise<void> {
    for (const last of [false, true]) {
      try {
        const released = await this.store.release(held, rest, PATIENCE / 5);
        if (!released && ours && !last) this.log(`${showItem(held.item)}: the lock was already lost at the end`);
        return;
      } catch (error) {
        if (last) this.log(`${showItem(held.item)}: lock not released: ${(error as Error).message}`);
      }
    }
  }

  private retaken(lease: HeldLock): void {
    this.log(`${showItem(lease.item)}: the lock had expired and was acquired again`);
  }

  private lost(lease: HeldLock, loss: Loss): void {
    const work = [...this.works].find((each) => each.lease === lease);
    const why = loss === 'foreign' ? 'another worker holds the lock' : 'the lock could not be refreshed in time';
    const ends = this.options.onLost === 'term';
    this.log(`error: ${showItem(lease.item)}: ${why}${ends ? ', ending the child' : ''}`);
    if (ends) work?.lose(loss, this.options.expiryMs);
  }
}

import { describeError, errorLine } from '../job/attempt.js';
import { CapturedOutput } from '../process/captured-output.js';
import { now } from '../process/clock.js';
import { whenDrained } from '../process/drained.js';
import type { Call } from './call.js';
import type { Channel, OpenChannel } from './channel.js';
import { CommandSender } from './command-sender.js';
import type { HostReply } from './messages.js';
import { packError, unpackError } from './sent-error.js';

export interface MemberSetup {
  open: OpenChannel;
  /** How long a call may go on after it was asked to stop, in milliseconds; and one that waits for the module to be loaded. */
  killAfter: number;
  killLoadingAfter: number;
  /** Whether the end of what a call has printed belongs to its outcome; default: never. */
  readsOutput?: (outcome: unknown) => boolean;
}

export interface MemberListener {
  ended: (call: Call, outcome: unknown, output: CapturedOutput) => void;
  /** Calls that have not started and will not. */
  returned: (calls: Call[]) => void;
  /** It can take another call, or never will. */
  changed: () => void;
  unloadable: (call: Call | undefined, why: string, cause?: unknown) => void;
}

/** No more is sent ahead to a member whose last sign of progress is older than this, in milliseconds. */
const STILL = 10;

/**
 * One process or thread of a pool, and its calls: it runs them in order, one at a time. The first is the one that runs, as far as
 * is known; the others are sent ahead.
 *
 *    loading ── ready ──▶ idle ◀── end ──┐
 *       │                  └─── run ──▶ busy
 *       └── unloadable, exit, kill ──▶ dead ◀── exit, kill
 */
export class PoolMember {
  isDead = false;
  isReady = false;
  /** How many calls it has had. */
  count = 0;
  readonly born = now();
  readonly calls: Call[] = [];
  #isKilled = false;
  #killer: NodeJS.Timeout | undefined;
  #progressAt = 0;
  /** What it has printed since the first call began, and when the last of it came. */
  #output = new CapturedOutput();
  #printedAt = 0;
  readonly #channel: Channel;
  readonly #sender: CommandSender;

  constructor(
    private readonly setup: MemberSetup,
    private readonly listener: MemberListener,
    /** The lowest number that no other living member has. */
    readonly slot: number,
  ) {
    this.#channel = setup.open({
      message: (reply) => this.#heard(reply),
      printed: (chunk) => {
        this.#printedAt = now();
        this.#output.add(chunk);
      },
      ended: (how) => this.#ended(how),
    });
    this.#sender = new CommandSender(this.#channel, (number, error) => this.#refuse(number, error));
  }

  get isIdle(): boolean {
    return this.calls.length === 0 && !this.isDead;
  }

  /** Whether it may get more than the call it runs, if each member may have so many more. */
  takesAhead(most: number): boolean {
    const { length } = this.calls;
    if (length > most || !this.isReady || this.isDead || this.calls[0]?.stopped) return false;
    return length === 0 || now() - this.#progressAt < STILL;
  }

  /** Runs a call as soon as the module is loaded, and what it has taken before has ended. Behind others it may start until `until`. */
  take(call: Call, until: number): void {
    const isFirst = this.calls.length === 0;
    call.member = this;
    call.number = ++this.count;
    call.until = isFirst ? undefined : until;
    this.calls.push(call);
    if (!isFirst) call.waits();
    if (this.isReady) this.#send(call);
    else if (call.stopped) this.stop(call, call.stopped);
  }

  /** The call has been asked to stop. */
  stop(call: Call, reason: Error): void {
    if (this.isReady) this.#sender.add({ stop: call.number, reason: packError(reason) });
    if (call === this.calls[0]) this.#limit(call);
  }

  /** Takes back the calls behind the first one that may no longer start. Everything that was sent until `time` has been read. */
  takeBack(time: number): Call[] {
    const late = this.calls.filter(({ until }, i) => i > 0 && until !== undefined && until < time);
    for (const call of late) this.calls.splice(this.calls.indexOf(call), 1);
    return late;
  }

  /** Ends by itself when it is idle, is killed when it is busy. Resolves when it is gone. */
  end(): Promise<void> {
    this.isDead = true;
    if (this.calls.length > 0 || !this.isReady) this.#kill();
    else this.#channel.end();
    this.#killer ??= setTimeout(() => this.#kill(), this.setup.killAfter);
    return this.#channel.gone;
  }

  #send(call: Call): void {
    const { number, until } = call;
    try {
      if (call.mustStop) throw call.stopped;
      const run = { run: number, call: call.message(), ...(until === undefined ? {} : { until }) };
      this.#sender.add(run, until !== undefined);
    } catch (error) {
      this.#refuse(number, error);
      return;
    }
    if (call === this.calls[0]) this.#start(call);
    if (call.stopped) this.stop(call, call.stopped);
  }

  /** The first call runs, as far as is known. `at`: when that began, at the earliest. */
  #start(call: Call, at = now()): void {
    this.#progressAt = now();
    if (this.#printedAt < at && !this.#output.empty) this.#output = new CapturedOutput();
    call.starts();
    if (call.stopped) this.#limit(call);
  }

  #limit(call: Call): void {
    if (!call.mustStop) return;
    const { killAfter, killLoadingAfter } = this.setup;
    this.#killer ??= setTimeout(() => this.#killIfStill(call), this.isReady ? killAfter : killLoadingAfter);
  }

  /** Kills it when no call behind this one can have started or can start, and this one goes on. */
  #killIfStill(call: Call): void {
    const wait = (this.calls.at(-1)?.until ?? 0) - now();
    if (wait >= 0 && this.calls.length > 1) {
      this.#killer = setTimeout(() => this.#killIfStill(call), wait + 1);
      return;
    }
    whenDrained(() => {
      if (call === this.calls[0]) this.#kill();
    });
  }

  #kill(): void {
    this.isDead = true;
    this.#isKilled = true;
    this.#channel.kill();
  }

  #heard(reply: HostReply): void {
    if ('end' in reply) {
      const { end, outcome, at } = reply;
      if (this.setup.readsOutput?.(outcome)) whenDrained(() => this.#finish(end, outcome, at));
      else this.#finish(end, outcome, at);
    } else if ('note' in reply) void this.#answer(reply.of, reply.note);
    else if ('returned' in reply) this.#takeOut(reply.returned);
    else if ('ready' in reply) this.#loaded();
    else this.#unloadable(errorLine(describeError(unpackError(reply.unloadable))), unpackError(reply.unloadable));
  }

  #loaded(): void {
    this.isReady = true;
    for (const call of [...this.calls]) this.#send(call);
  }

  async #answer(number: number, note: unknown): Promise<void> {
    const call = this.calls.find((one) => one.number === number);
    if (call) this.#sender.add({ answer: await call.note(note) });
  }

  #finish(number: number, outcome: unknown, at: number): void {
    const output = this.#output;
    const call = this.#remove(number, at);
    if (!call) return;
    this.listener.ended(call, outcome, output);
    this.listener.changed();
  }

  #refuse(number: number, error: unknown): void {
    this.#remove(number)?.refused(error);
    this.listener.changed();
  }

  #takeOut(numbers: number[]): void {
    this.listener.returned(numbers.flatMap((number) => this.#remove(number) ?? []));
    this.listener.changed();
  }

  /** The call is no longer here; the next one runs, if it was the first. */
  #remove(number: number, at?: number): Call | undefined {
    const place = this.calls.findIndex((call) => call.number === number);
    if (place < 0) return undefined;
    const [call] = this.calls.splice(place, 1);
    if (place > 0) return call;
    clearTimeout(this.#killer);
    this.#killer = undefined;
    if (this.calls.length > 0) this.#start(this.calls[0]!, at);
    return call;
  }

  #unloadable(why: string, cause?: unknown): void {
    this.#kill();
    this.listener.unloadable(this.calls.shift(), why, cause);
  }

  #ended(how: string): void {
    this.isDead = true;
    clearTimeout(this.#killer);
    // The end of what it printed, and of what it sent, may still be on its way.
    whenDrained(() => {
      const isKilled = this.#isKilled;
      if (!this.isReady && !isKilled) this.#unloadable(how);
      const [first, ...others] = this.calls.splice(0);
      first?.crashed({ how, isKilled }, this.#output);
      this.listener.returned(others);
      this.listener.changed();
    });
  }
}

import { now } from '../process/clock.js';
import { whenDrained } from '../process/drained.js';
import type { HostCommand, HostReply } from './messages.js';
import { packError, type SentError } from './sent-error.js';

/** What a process or thread does with the calls that are sent to it. */
export interface CallRunner {
  load(): Promise<void>;
  /** Runs a call and resolves with how it ended. Never rejects. `note` sends something about it, before its end. */
  run(call: never, note: (note: unknown) => void): Promise<unknown>;
  /** Asks the call that runs to stop. */
  stop(reason: SentError): void;
  /** The answer to a note. */
  answer?(answer: never): void;
}

/** Resolves when the message has left this process or thread. */
export type SendReply = (reply: HostReply) => Promise<void> | void;

/** How long calls may follow each other, in milliseconds, before the messages that have arrived meanwhile are read. */
const LISTEN_AFTER = 2;

type SentCall = Extract<HostCommand, { run: number }>;

/**
 * Runs the calls that are sent to this process or thread: in order, one at a time. Others may wait here. The end of a call has left
 * before the next one starts, and none starts after its time: so the pool knows which one ran when the process dies, and that
 * those behind a slow one have not started, even if this process is too busy to be asked.
 */
export class CallHost {
  readonly #waiting: SentCall[] = [];
  #running: number | undefined;
  #isBusy = false;
  #listenedAt = 0;
  /** Resolves when the last message has left, and with it all before it. */
  #left: Promise<void> | void = undefined;

  constructor(
    private readonly runner: CallRunner,
    private readonly send: SendReply,
  ) {}

  async load(): Promise<void> {
    try {
      await this.runner.load();
    } catch (error) {
      await this.send({ unloadable: packError(error) });
      return;
    }
    await this.send({ ready: true });
  }

  obey(commands: readonly HostCommand[]): void {
    this.#listenedAt = now();
    const returned: number[] = [];
    for (const command of commands) {
      if ('run' in command) this.#waiting.push(command);
      else if ('answer' in command) this.runner.answer?.(command.answer as never);
      else if ('stop' in command && this.#stop(command.stop, command.reason)) returned.push(command.stop);
    }
    if (returned.length > 0) this.#send({ returned });
    if (!this.#isBusy && this.#waiting.length > 0) void this.#work();
  }

  async #work(): Promise<void> {
    this.#isBusy = true;
    while (this.#waiting.length > 0) {
      this.#returnLate();
      await this.#left;
      const next = this.#waiting[0];
      if (next && isInTime(next)) await this.#run(this.#waiting.shift()!);
    }
    this.#isBusy = false;
  }

  async #run({ run, call }: SentCall): Promise<void> {
    this.#running = run;
    const outcome = await this.runner.run(call as never, (note) => this.#send({ note, of: run }));
    this.#running = undefined;
    const at = now();
    this.#send({ end: run, outcome, at });
    if (this.#waiting.length > 0 && at - this.#listenedAt > LISTEN_AFTER) await this.#listen();
  }

  /** If the next call is too late to start, all of them are returned, to keep their order. */
  #returnLate(): void {
    if (!isInTime(this.#waiting[0]!)) this.#send({ returned: this.#waiting.splice(0).map(({ run }) => run) });
  }

  #send(reply: HostReply): void {
    this.#left = this.send(reply);
  }

  /** Returns true if the call had not started, and now never will. */
  #stop(call: number, reason: SentError): boolean {
    const place = this.#waiting.findIndex(({ run }) => run === call);
    if (place >= 0) this.#waiting.splice(place, 1);
    else if (call === this.#running) {
      // A call that has just got an answer goes on first: it may be about to listen for its stop.
      setImmediate(() => {
        if (call === this.#running) this.runner.stop(reason);
      });
    }
    return place >= 0;
  }

  async #listen(): Promise<void> {
    await new Promise<void>((resolve) => whenDrained(resolve));
    this.#listenedAt = now();
  }
}

function isInTime({ until }: SentCall): boolean {
  return until === undefined || now() <= until;
}

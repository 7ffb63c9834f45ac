import type { CapturedOutput } from '../process/captured-output.js';
import type { PoolMember } from './pool-member.js';

/** Why a process or thread is no more. */
export interface Death {
  /** The exit code or signal. */
  how: string;
  /** The pool has killed it. */
  isKilled: boolean;
}

/** One call that a pool runs in a process or thread, and what becomes of it. Exactly one of the methods after `note` is called. */
export abstract class Call {
  /** The process or thread that has it, and its number there. */
  member: PoolMember | undefined;
  number = 0;
  /** Its place in the order of the pool. */
  order = 0;
  /** Set while it is sent ahead: it may only start until this time. */
  until: number | undefined;
  /** Since when it waits for a process or thread. */
  since = 0;

  /** Why it was asked to stop, if it was. */
  abstract get stopped(): Error | undefined;
  /** Whether it is killed if it goes on for too long after it was asked to stop. */
  abstract get mustStop(): boolean;
  /** What is sent. Throws when it cannot be sent. */
  abstract message(): unknown;
  /** It waits behind another call. */
  waits(): void {}
  /** As far as is known, it runs now. */
  starts(): void {}
  /** Answers something that was sent about it. */
  async note(_note: unknown): Promise<unknown> {
    return undefined;
  }

  /** Returns how many milliseconds it took, if that says something about the next ones. */
  abstract ended(outcome: unknown, output: CapturedOutput): number | undefined;
  /** It has not run: it was stopped before, or cannot be sent. */
  abstract refused(error: unknown): void;
  /** It has not run, and nobody is free for it. */
  abstract givenBack(): void;
  /** Its process or thread died with it. */
  abstract crashed(death: Death, output: CapturedOutput): void;
  /** Its process or thread cannot run anything. */
  abstract unloadable(why: string, cause: unknown): void;
}

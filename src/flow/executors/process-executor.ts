import { fileURLToPath } from 'node:url';
import { CroreError } from '../../errors.js';
import { Call, type Death } from '../../pool/call.js';
import { processChannels } from '../../pool/channel.js';
import { Pool } from '../../pool/pool.js';
import type { PoolMember } from '../../pool/pool-member.js';
import type { CapturedOutput } from '../../process/captured-output.js';
import { now } from '../../process/clock.js';
import { guardProcessGroups } from '../../process/group-guard.js';
import { type Executor, limitTime, type NodeOutcome, type NodeTask } from './executor.js';
import type { Renewal } from './renewal.js';

/** A call of a function, as it is sent to a process. */
export interface FunctionCallMessage {
  node: string;
  id: string;
  attempt: number;
  needs?: Record<string, unknown> | undefined;
  part?: number | undefined;
  item?: unknown;
}

/** What a process answers; `rss` is its resident memory in bytes. */
export interface FunctionEnd {
  outcome: NodeOutcome;
  rss: number;
}

/** How long a stopped function may take before its process is killed. */
const GRACE = 3_000;
/** How many processes in a row may die before they are ready. */
const MAX_STILLBORN = 3;

/** Runs functions in persistent child processes: one at a time in each, started on demand. */
export class ProcessExecutor implements Executor {
  readonly keepsTime = true;
  readonly #guarded = guardProcessGroups();
  readonly #pool: Pool;
  #stillborn = 0;

  constructor(
    private readonly module: string,
    private readonly renewal: Renewal,
  ) {
    this.#pool = new Pool({
      // The runner has only so many slots.
      size: Number.POSITIVE_INFINITY,
      open: processChannels({
        program: fileURLToPath(new URL('./function-process.js', import.meta.url)),
        args: [module],
        guarded: this.#guarded,
        serialization: 'json',
        stdout: 'pipe',
      }),
      killAfter: GRACE,
      killLoadingAfter: 0,
      readsOutput: (end) => (end as FunctionEnd).outcome.exit !== 0,
      isWorn: (member, end) => this.#isWorn(member, end as FunctionEnd),
    });
  }

  run(task: NodeTask): Promise<NodeOutcome> {
    return new Promise((resolve, reject) => {
      const call = new FunctionCall(task, {
        ended: (outcome) => {
          this.#stillborn = 0;
          resolve(outcome);
        },
        unloadable: (how) => {
          if (++this.#stillborn < MAX_STILLBORN) resolve({ exit: 0, returned: true });
          else reject(this.#broken(how));
        },
      });
      task.stop = (why) => this.#pool.stop(call, new Error(why));
      this.#pool.run(call);
    });
  }

  async close(): Promise<void> {
    await this.#pool.close();
    this.#guarded.guard.close();
  }

  #isWorn({ count, born }: PoolMember, { rss }: FunctionEnd): boolean {
    const { tasks, seconds, rss: most } = this.renewal;
    return count >= tasks || now() - born > seconds * 1_000 || rss > most * 1_048_576;
  }

  #broken(how: string): CroreError {
    const what = `worker processes for ${this.module} exit before they are ready (${how})`;
    return new CroreError('WORKER_FAILED', what);
  }
}

interface FunctionListener {
  ended: (outcome: NodeOutcome) => void;
  unloadable: (how: string) => void;
}

/** One attempt at a node. */
class FunctionCall extends Call {
  constructor(
    private readonly task: NodeTask,
    private readonly listener: FunctionListener,
  ) {
    super();
  }

  get stopped(): Error | undefined {
    return this.task.stopped === undefined ? undefined : new Error(this.task.stopped);
  }

  get mustStop(): boolean {
    return this.task.stopped !== undefined;
  }

  message(): FunctionCallMessage {
    const { id, spec, attempt, needs, part, item } = this.task;
    if (spec.work.kind !== 'function') throw new Error(`node '${id}' is not a function`);
    return { node: part === undefined ? id : id.slice(0, id.lastIndexOf('[')), id, attempt, needs, part, item };
  }

  override starts(): void {
    limitTime(this.task);
  }

  ended({ outcome }: FunctionEnd, output: CapturedOutput): undefined {
    this.#end(outcome.exit === 0 ? outcome : { ...outcome, printed: output.text });
  }

  refused(error: unknown): void {
    this.#end({ exit: 1, error: (error as Error).message });
  }

  givenBack(): void {
    this.#end({ exit: 0, returned: true });
  }

  crashed({ how }: Death, output: CapturedOutput): void {
    const error = `its worker process died (${how})`;
    this.#end({ exit: 1, error, crashed: this.task.stopped === undefined, printed: output.text });
  }

  unloadable(how: string): void {
    this.listener.unloadable(how);
  }

  #end(outcome: NodeOutcome): void {
    this.listener.ended({ ...outcome, slot: this.member?.slot });
  }
}

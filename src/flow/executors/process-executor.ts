import { fileURLToPath } from 'node:url';
import { CroreError } from '../../errors.js';
import { CapturedOutput } from '../../process/captured-output.js';
import { whenDrained } from '../../process/drained.js';
import { ForkedProgram } from '../../process/forked-program.js';
import { guardProcessGroups } from '../../process/group-guard.js';
import { type Executor, limitTime, type NodeOutcome, type NodeTask } from './executor.js';
import type { Renewal } from './renewal.js';

/** Messages from the runner to a worker process, and back. */
export type ProcessRequest =
  | {
      call: number;
      node: string;
      id: string;
      attempt: number;
      needs?: Record<string, unknown>;
      part?: number;
      item?: unknown;
    }
  | { stop: number; why: string };
export type ProcessResponse = { ready: true } | { call: number; outcome: NodeOutcome; rss: number };

/** How long a stopped function may take before its process is killed. */
const GRACE = 3_000;
/** How many processes in a row may die before they are ready. */
const MAX_STILLBORN = 3;

/** Runs functions in persistent child processes: one at a time in each, started on demand. */
export class ProcessExecutor implements Executor {
  readonly keepsTime = true;
  readonly #idle: FunctionProcess[] = [];
  readonly #all = new Set<FunctionProcess>();
  readonly #guarded = guardProcessGroups();
  #stillborn = 0;
  #next = 0;

  constructor(
    private readonly module: string,
    private readonly renewal: Renewal,
  ) {}

  async run(task: NodeTask): Promise<NodeOutcome> {
    const worker = this.#idle.pop() ?? this.#start();
    task.stop = (why) => worker.stop(why);
    await worker.ready;
    limitTime(task);
    const outcome = worker.dead ? worker.death : await worker.run(++this.#next, task);
    if (worker.stillborn) {
      if (++this.#stillborn < MAX_STILLBORN) return { exit: 0, returned: true };
      throw new CroreError(
        'WORKER_FAILED',
        `worker processes for ${this.module} exit before they are ready (${worker.last})`,
      );
    }
    this.#stillborn = 0;
    if (!worker.dead && worker.worn(this.renewal)) worker.end();
    if (!worker.dead) this.#idle.push(worker);
    return { ...outcome, slot: worker.slot };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((worker) => worker.end()));
    this.#guarded.guard.close();
  }

  #start(): FunctionProcess {
    const taken = new Set([...this.#all].map(({ slot }) => slot));
    let slot = 0;
    while (taken.has(slot)) slot++;
    const worker: FunctionProcess = new FunctionProcess(this.module, this.#guarded, slot, () => {
      this.#all.delete(worker);
      const place = this.#idle.indexOf(worker);
      if (place >= 0) this.#idle.splice(place, 1);
    });
    this.#all.add(worker);
    return worker;
  }
}

class FunctionProcess {
  dead = false;
  /** It exited before it could do anything. */
  stillborn = false;
  /** How it exited. */
  last = '';
  readonly #program: ForkedProgram;
  readonly #born = performance.now();
  /** Resolves when it accepts work, or never will. */
  readonly ready: Promise<void>;
  #isReady = false;
  #resolveReady!: () => void;
  #count = 0;
  #rss = 0;
  #current: { call: number; resolve: (outcome: NodeOutcome) => void } | undefined;
  #killer: NodeJS.Timeout | undefined;
  /** What the current function has printed. */
  #printed = new CapturedOutput();

  constructor(
    module: string,
    guarded: ReturnType<typeof guardProcessGroups>,
    readonly slot: number,
    onGone: () => void,
  ) {
    this.ready = new Promise((resolve) => {
      this.#resolveReady = resolve;
    });
    this.#program = new ForkedProgram({
      program: fileURLToPath(new URL('./function-process.js', import.meta.url)),
      args: [module],
      guarded,
      serialization: 'json',
      stdout: 'pipe',
      message: (answer) => this.#heard(answer as ProcessResponse),
      printed: (chunk) => this.#printed.add(chunk),
      ended: (how) => {
        this.#over(how);
        onGone();
      },
    });
  }

  run(call: number, { id, node: _, spec, attempt, needs, part, item }: NodeTask): Promise<NodeOutcome> {
    this.#count++;
    const node = part === undefined ? id : id.slice(0, id.lastIndexOf('['));
    if (spec.work.kind !== 'function') throw new Error(`node '${id}' is not a function`);
    this.#printed = new CapturedOutput();
    return new Promise((resolve) => {
      this.#current = { call, resolve };
      this.#program.send({ call, node, id, attempt, needs, part, item } satisfies ProcessRequest);
    });
  }

  stop(why: string): void {
    const call = this.#current?.call;
    if (call === undefined) {
      if (!this.#isReady) this.#program.kill();
      return;
    }
    this.#program.send({ stop: call, why } satisfies ProcessRequest);
    this.#killer = setTimeout(() => this.#program.kill(), GRACE);
  }

  get death(): NodeOutcome {
    return { exit: 1, error: `its worker process died (${this.last})`, crashed: this.#killer === undefined };
  }

  worn({ tasks, seconds, rss }: Renewal): boolean {
    return this.#count >= tasks || performance.now() - this.#born > seconds * 1_000 || this.#rss > rss * 1_048_576;
  }

  /** An idle process exits when the IPC channel closes; a busy one is killed. */
  end(): Promise<void> {
    this.dead = true;
    if (this.#current) this.#program.kill();
    else this.#program.disconnect();
    return this.#program.gone;
  }

  #heard(answer: ProcessResponse): void {
    if ('ready' in answer) {
      this.#isReady = true;
      this.#resolveReady();
      return;
    }
    if (this.#current?.call !== answer.call) return;
    clearTimeout(this.#killer);
    this.#rss = answer.rss;
    const { resolve } = this.#current;
    this.#current = undefined;
    this.#end(resolve, answer.outcome);
  }

  #over(how: string): void {
    this.dead = true;
    this.last = how;
    clearTimeout(this.#killer);
    this.stillborn = !this.#isReady;
    this.#resolveReady();
    const current = this.#current;
    this.#current = undefined;
    if (current) this.#end(current.resolve, this.death);
  }

  /** The end of what a failed function printed may still be on its way. */
  #end(resolve: (outcome: NodeOutcome) => void, outcome: NodeOutcome): void {
    if (outcome.exit === 0) resolve(outcome);
    else whenDrained(() => resolve({ ...outcome, printed: this.#printed.text }));
  }
}

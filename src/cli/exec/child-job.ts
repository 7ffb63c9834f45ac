import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { type ActiveJob, CroreError, Fatal } from '../../index.js';
import { contextVariables } from '../../job/trace-context.js';
import { Child, type ChildExit } from '../../process/child.js';
import { type ChildCommand, childCommand } from '../../process/child-command.js';
import type { OrphanGuard } from '../../process/orphan-guard.js';
import { readValue } from '../job-commands/job-options.js';
import { valueText } from '../job-commands/job-view.js';
import type { ExitOutcome } from './exit-codes.js';
import { StderrTail } from './stderr-tail.js';

/** How executables are run for jobs. */
export interface ChildJobSettings {
  command: readonly string[];
  /** The environment children inherit, read once because iterating over the real one is slow. */
  env: NodeJS.ProcessEnv;
  /** Name of the variable that holds the payload; '' for none. */
  envVar: string;
  /** Writes the payload to standard input. */
  stdin: boolean;
  /** Uses the last line of standard output as the result. */
  result: boolean;
  /** Standard output is reserved for our JSON: the children's output goes to standard error. */
  json: boolean;
  outcome: (code: number) => ExitOutcome;
  timeout: number | undefined;
  grace: number;
  /** How long the lease lasts after the last heartbeat. */
  lease: number;
}

/** Why we ended a child ourselves. */
type Ending = 'stopped' | 'lost' | 'timeout';

/** How a run ended: its outcome, or that the job goes back, or that we no longer held it. */
export interface Report {
  outcome: ExitOutcome | 'released' | 'lost';
  code: number;
  signal: string;
  seconds: number;
}

/** The executable could not be started at all, which is not the job's fault. */
export class CannotStart extends Error {}

/** The library refuses results over its limit: keeping more than this is not needed to detect that. */
const LONGEST_LINE = 1_048_577;
/** How long to wait for a pipe that another process still holds open. */
const LINGER = 2_000;

/** One run of the executable for one job. */
export class ChildJob {
  readonly #child: Child;
  readonly #settings: ChildJobSettings;
  readonly #startedAt = performance.now();
  #ending: Ending | undefined;

  constructor(
    readonly job: ActiveJob<unknown>,
    settings: ChildJobSettings,
    plan: ChildCommand,
    guard: OrphanGuard,
  ) {
    this.#settings = settings;
    this.#child = new Child(spawn, plan, guard);
  }

  /** Runs to the end. Returns or throws what the job's handler is to return or throw. */
  async run(onReport: (report: Report) => void): Promise<unknown> {
    const { timeout, grace } = this.#settings;
    const { signal } = this.job;
    const onAbort = () => this.#abort(signal.reason as CroreError);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    const timer = timeout === undefined ? undefined : setTimeout(() => this.#end('timeout', grace), timeout);
    const reading = this.#child.stdout ? lastLine(this.#child.stdout, this.#child.ended) : undefined;
    const stderr = this.#child.stderr ? new StderrTail(this.#child.stderr) : undefined;
    const outcome = await this.#child.ended;
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
    if (outcome.failure) return this.#notStarted(outcome.failure);
    const last = await reading;
    onReport(this.#report(outcome));
    try {
      return this.#conclude(outcome, last);
    } catch (error) {
      throw Object.assign(error as Error, { stack: undefined, stderr: await stderr?.text() });
    }
  }

  /** The worker stops: the child may end by itself, and is killed after the grace time. */
  stop(): void {
    this.#end('stopped', this.#settings.grace);
  }

  signalGroup(name: NodeJS.Signals): void {
    this.#child.signalGroup(name);
  }

  #abort(reason: CroreError): void {
    const { grace, lease } = this.#settings;
    // If the store is unreachable, the child must be gone before the lease ends and another worker gets the job.
    const silent = reason.cause instanceof CroreError && reason.cause.code === 'STORE_UNREACHABLE';
    if (reason.code === 'CLOSED') this.stop();
    else this.#end('lost', silent ? Math.min(grace, lease / 10) : grace);
  }

  /** The first reason wins, except that losing the job overrides all others. */
  #end(why: Ending, graceMs: number): void {
    if (this.#ending === 'lost' || (this.#ending && why !== 'lost')) return;
    this.#ending = why;
    this.#child.end(graceMs);
  }

  /** When we ended the child, its exit is not an outcome, unless its exit code says that it was done or must not be retried. */
  #outcome({ code, signal }: ChildExit): Report['outcome'] {
    if (this.#ending === 'lost') return 'lost';
    const outcome = this.#settings.outcome(code);
    const own = signal === '' && outcome !== 'retry';
    if (this.#ending === 'stopped') return own ? outcome : 'released';
    if (this.#ending === 'timeout') return own && outcome === 'dead' ? 'dead' : 'retry';
    return outcome;
  }

  #report(outcome: ChildExit): Report {
    const { code, signal } = outcome;
    const reported = this.#outcome(outcome);
    const isLast = this.job.attempt >= this.job.maxAttempts;
    return {
      outcome: reported === 'retry' && isLast ? 'dead' : reported,
      code,
      signal,
      seconds: (performance.now() - this.#startedAt) / 1_000,
    };
  }

  #conclude(outcome: ChildExit, last: Buffer | undefined): unknown {
    const { code, signal } = outcome;
    const how = signal ? `killed by ${signal}` : `exit code ${code}`;
    const late = this.#ending === 'timeout' ? `took longer than ${this.#settings.timeout} ms: ` : '';
    switch (this.#outcome(outcome)) {
      case 'done':
        return last === undefined ? undefined : readValue(last);
      case 'dead':
        throw new Fatal(`${late}${how}`);
      case 'released':
        this.job.release();
        return undefined;
      case 'lost':
        // If the lease is still valid after all, a success counts and anything else returns the job.
        if (signal === '' && this.#settings.outcome(code) === 'done')
          return last === undefined ? undefined : readValue(last);
        throw new Error(how);
      case 'retry':
        throw new Error(`${late}${how}`);
    }
  }

  #notStarted(failure: string): never {
    // Only this payload causes it; others can still be run.
    if (failure.includes('argument list too long')) throw new Fatal(failure);
    this.job.release();
    throw new CannotStart(failure);
  }
}

/** The command to start for a job; throws `Fatal` for a payload that cannot be passed to any process. */
export function planChildJob(job: ActiveJob<unknown>, settings: ChildJobSettings, mark: string): ChildCommand {
  const { command, envVar, stdin, result, json } = settings;
  const env = {
    ...settings.env,
    CRORE_ID: job.isTask ? '' : job.id,
    CRORE_QUEUE: job.queue,
    CRORE_ATTEMPT: String(job.attempt),
    CRORE_TOKEN: job.token,
    ...contextVariables(job.headers),
  };
  const options = { command, envVar, stdin: stdin ? 'item' : 'inherit', env } as const;
  const plan = childCommand(payloadBytes(job.payload), options, mark);
  if (typeof plan === 'string') throw new Fatal(`cannot pass the payload to ${command[0]}: ${plan}; use --stdin`);
  return { ...plan, stdout: result ? 'pipe' : json ? 2 : undefined, stderr: 'pipe' };
}

function payloadBytes(payload: unknown): Buffer {
  if (payload instanceof Uint8Array) return Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength);
  return Buffer.from(valueText(payload));
}

/** The last non-empty line, read while the child runs so that the child never blocks on us. */
async function lastLine(stream: Readable, ended: Promise<unknown>): Promise<Buffer | undefined> {
  let last: Buffer | undefined;
  let line: Buffer[] = [];
  let length = 0;
  const finish = () => {
    if (length > 0) last = Buffer.concat(line);
    [line, length] = [[], 0];
  };
  stream.on('data', (chunk: Buffer) => {
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      keep(chunk.subarray(from, end));
      finish();
      from = end + 1;
    }
    keep(chunk.subarray(from));
  });
  const keep = (part: Buffer) => {
    const room = part.subarray(0, LONGEST_LINE - length);
    if (room.length > 0) line.push(room);
    length += room.length;
  };
  const closed = new Promise<void>((resolve) => stream.once('close', resolve).once('error', () => resolve()));
  await ended;
  let timer: NodeJS.Timeout | undefined;
  const patience = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, LINGER);
  });
  await Promise.race([closed, patience]);
  clearTimeout(timer);
  stream.destroy();
  finish();
  return last;
}

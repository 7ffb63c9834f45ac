import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { STATES } from '../../../dist/job/job.js';
import { openStore } from '../../../dist/store/open.js';
import { PostgresServer } from '../../support/postgres.js';
import { Program } from '../../support/processes.js';
import { RedisServer } from '../../support/redis.js';
import { freshPostgres } from '../../support/stores.js';
import { until } from '../../support/wait.js';
import { type Bounds, check, type Verdict } from '../history/checker.js';
import { type Event, readHistory } from '../history/events.js';
import type { FinalState } from '../history/rules.js';
import { Recorder } from '../programs/recorder.mjs';

const PROGRAMS = new URL('../programs/', import.meta.url);

/** The settings of workers in experiments: a dead one is noticed within lease and sweep. */
export const FAST = { lease: 1_000, heartbeat: 200, sweep: 100 };
/** Lease, sweep, and what a busy machine of two cores adds. */
export const BACK_WITHIN = FAST.lease + FAST.sweep + 2_500;

export interface WorkerSetup {
  url: string;
  queue?: string;
  take?: number;
  mode?: 'work' | 'hold' | 'spin' | 'poison';
  timeout?: number;
  sample?: number;
  options?: object;
}

export interface ProducerSetup {
  url: string;
  queue?: string;
  prefix?: string;
  count: number;
  each?: number;
  pause?: number;
  insist?: boolean;
  timeout?: number;
}

/** Everything that an experiment starts, with its history; `close` ends it all. */
export class Lab {
  readonly dir = mkdtempSync(join(tmpdir(), 'crore-fault-'));
  readonly #history = join(this.dir, 'history');
  readonly #cleanups: (() => unknown)[] = [];
  readonly #conductor: Recorder;
  readonly #names = new Map<Program, string>();
  #count = 0;

  /** `long`: in `npm run faults`; the short form runs with all other tests. */
  constructor(readonly long: boolean) {
    mkdirSync(this.#history);
    this.#conductor = new Recorder(this.#history, 'experiment');
  }

  size(short: number, long: number): number {
    return this.long ? long : short;
  }

  onClose(cleanup: () => unknown): void {
    this.#cleanups.push(cleanup);
  }

  async redis(args: string[] = []): Promise<RedisServer> {
    const redis = await RedisServer.start(args);
    this.onClose(() => redis.stop());
    return redis;
  }

  async postgres(settings: Record<string, string> = {}, places: { data?: string; wal?: string } = {}) {
    const server = await PostgresServer.start(settings, places);
    this.onClose(() => server.stop());
    return server;
  }

  sqlite(name = 'crore.db'): string {
    return `sqlite:${join(this.dir, name)}`;
  }

  /** An empty store of this kind. */
  async store(kind: string): Promise<string> {
    if (kind === 'sqlite') return this.sqlite();
    if (kind === 'redis') return (await this.redis()).url;
    const { url, stop } = await freshPostgres();
    this.onClose(stop);
    return url;
  }

  program(file: string, setup: object, within: string[] = []): Program {
    const name = `${file}-${++this.#count}`;
    const path = fileURLToPath(new URL(`${file}.mjs`, PROGRAMS));
    const program = new Program(path, { dir: this.#history, name, ...setup }, within);
    this.#names.set(program, name);
    this.onClose(() => program.end());
    return program;
  }

  async worker(setup: WorkerSetup, within?: string[]): Promise<Program> {
    const options = { ...FAST, concurrency: 10, maxCrashes: 1_000, ...setup.options };
    const program = this.program('worker', { queue: 'load', ...setup, options }, within);
    await program.line('ready');
    return program;
  }

  producer(setup: ProducerSetup, within?: string[]): Program {
    return this.program('producer', { queue: 'load', prefix: `p${this.#count}-`, ...setup }, within);
  }

  nameOf(program: Program): string {
    return this.#names.get(program)!;
  }

  /** SIGKILL, noted in the history. */
  async kill(program: Program): Promise<void> {
    this.died(program);
    await program.end('SIGKILL');
  }

  died(program: Program): void {
    const victim = this.nameOf(program);
    this.#conductor.write({ verb: 'death', phase: 'note', call: 0, victim });
  }

  history(): Event[] {
    return readHistory(this.#history);
  }

  /** Waits until nothing of a queue is left to do. */
  async drained(url: string, { queue = 'load', within = 60_000 } = {}): Promise<void> {
    const store = await openStore(url, { timeout: 5_000 });
    this.onClose(() => store.close());
    const isDrained = async () => {
      const counts = await store.count(queue).catch(() => undefined);
      return counts && counts.ready + counts.active + counts.scheduled + counts.blocked === 0;
    };
    await until('everything to be done', isDrained, { within, every: 50 });
  }

  async final(url: string, queue = 'load'): Promise<FinalState> {
    const store = await openStore(url, { timeout: 5_000 });
    const jobs: FinalState['jobs'] = [];
    for (const state of STATES) {
      let cursor: string | undefined;
      do {
        const page = await store.list(queue, { state, limit: 1_000, cursor });
        jobs.push(...page.jobs.map(({ id }) => ({ id, state })));
        ({ cursor } = page);
      } while (cursor !== undefined);
    }
    const { droppedDead: _dropped, ...counts } = await store.count(queue);
    await store.close();
    return { jobs, counts };
  }

  async check(url: string, bounds: Bounds = {}, queue = 'load'): Promise<Verdict> {
    return check(this.history(), await this.final(url, queue), { allEnded: true, ...bounds });
  }

  /** Returns where the histories are if they are to be kept. */
  async close({ keep = false } = {}): Promise<string | undefined> {
    for (const cleanup of this.#cleanups.splice(0).reverse()) await cleanup();
    const kept = `${this.dir}-history`;
    if (keep) cpSync(this.#history, kept, { recursive: true });
    rmSync(this.dir, { recursive: true, force: true });
    return keep ? kept : undefined;
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Whether a command works here. */
export function works(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}

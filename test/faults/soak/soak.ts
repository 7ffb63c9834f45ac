import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { openStore } from '../../../dist/store/open.js';
import type { Store } from '../../../dist/store/store.js';
import type { Program } from '../../support/processes.js';
import { until } from '../../support/wait.js';
import { inventoryOf, leftovers } from '../history/leftovers.js';
import type { Lab } from '../support/lab.js';
import { Crew, type Times } from './crew.js';
import { Injector } from './injector.js';
import { takeJournals } from './journals.js';
import { addRound, emptyState, type SoakState } from './state.js';
import { type Tally, tally } from './tally.js';
import { postgresTarget, redisTarget, sqliteTarget, type Target } from './target.js';

const TARGETS = { redis: redisTarget, sqlite: sqliteTarget, postgres: postgresTarget };

export interface SoakSetup {
  store: keyof typeof TARGETS;
  jobs: number;
  /** Jobs of a round; a round ends when all its jobs have ended. A multiple of a thousand. */
  round: number;
  times: Times;
  /** How much more often faults occur than every few seconds. */
  pace: number;
  /** No round begins after this many milliseconds. */
  limit: number;
  /** Where the state is kept between rounds, for `resume`. */
  file?: string;
  resume?: boolean;
  say?: (line: string) => void;
}

const VICTIMS = 2;
const PRODUCER_KILL = 15_000;
const STUCK = 180_000;

/** Runs jobs in rounds, with faults all the way, and checks every round. */
export class Soak {
  readonly #state: SoakState;
  readonly #began = Date.now();

  private constructor(
    private readonly setup: SoakSetup,
    private readonly target: Target,
    private readonly crew: Crew,
    private readonly injector: Injector,
    private readonly producers: Program[],
    private readonly store: Store,
  ) {
    this.#state = setup.resume ? readState(setup) : emptyState(setup.store, setup.jobs);
  }

  static async run(lab: Lab, setup: SoakSetup): Promise<SoakState> {
    const target = await TARGETS[setup.store](lab);
    const store = await openStore(target.url, { timeout: 20_000 });
    lab.onClose(() => store.close());
    const crew = new Crew(lab, { direct: target.url, proxied: target.proxied }, setup.times);
    const injector = new Injector(crew, target, setup.times, VICTIMS, setup.pace);
    const soak = new Soak(setup, target, crew, injector, [crew.producer(), crew.producer()], store);
    await soak.#rounds();
    return soak.#state;
  }

  async #rounds(): Promise<void> {
    const { jobs, round, limit, file } = this.setup;
    const empty = await inventoryOf(this.target.url);
    while (this.#state.jobs < jobs && Date.now() - this.#began < limit && this.#state.violations.length === 0) {
      const from = this.#state.jobs;
      const began = Date.now();
      const result = await this.#round(from, Math.min(from + round, jobs));
      addRound(this.#state, result, Date.now() - began, this.crew.faults.splice(0), await this.#memory());
      if (file) writeFileSync(file, JSON.stringify(this.#state));
      this.setup.say?.(
        `${await this.#progress(from, result.jobs, began)}; round checked: ${result.violations.length === 0 ? 'ok' : result.violations.join('; ')}`,
      );
    }
    // Names of queues stay listed for a while, and the history of all queues is of bounded size.
    const left = leftovers(empty, await inventoryOf(this.target.url));
    this.#state.leftOver = left.filter((text) => !/history|registry|^queues:|^counters:|:meta:/.test(text));
  }

  async #round(from: number, to: number): Promise<Tally> {
    const queue = `soak-${from}`;
    const began = Date.now();
    await this.crew.begin(queue, VICTIMS);
    this.injector.start();
    const progress = setInterval(() => {
      void this.#progress(from, to - from, began, queue).then(this.setup.say, () => {});
    }, 5_000);
    const halfway = from + Math.floor((to - from) / 2 / 1_000) * 1_000;
    const add = Promise.all([this.#add(0, queue, from, halfway), this.#add(1, queue, halfway, to)]);
    await this.#restartsAt(queue, from, to);
    await add;
    await until('every job of the round to have ended', async () => (await this.#waiting(queue)) === 0, {
      within: STUCK,
      every: 100,
    });
    clearInterval(progress);
    await this.injector.stop();
    await this.crew.end(async () => (await this.store.workers(queue)).length === 1);
    const end = { counts: await this.store.count(queue), dead: await this.#dead(queue) };
    const result = tally(from, to, takeJournals(this.crew.journals, this.crew.living), this.crew.faults, end);
    for (const name of this.crew.journals.keys()) if (!this.crew.living.has(name)) this.crew.journals.delete(name);
    await this.store.obliterate(queue);
    // A sweep deletes an empty queue that has no workers.
    for (let i = 0; i < 3; i++) await this.store.sweep(queue, { lease: this.setup.times.lease, every: 0 });
    return result;
  }

  /** The store is restarted twice in a soak, in the middle of a round. */
  async #restartsAt(queue: string, from: number, to: number): Promise<void> {
    const { jobs } = this.setup;
    const due = [jobs / 3, (jobs * 2) / 3].filter((at) => at >= from && at < to);
    for (const at of due) {
      await until('jobs to be done', async () => ((await this.#counts(queue))?.done ?? 0) > (at - from) / 2, {
        within: STUCK,
        every: 100,
      });
      await this.injector.restart();
    }
  }

  /** The second producer is killed now and then, and its successor starts where it was. */
  async #add(place: number, queue: string, from: number, to: number): Promise<void> {
    let at = from;
    while (at < to) {
      const program = this.producers[place]!;
      const seen = program.lines.length;
      program.tell(`add ${queue} ${at} ${to}`);
      const last = () => Number(program.lines.slice(seen).at(-1)?.split(' ')[1] ?? at);
      const due = Date.now() + (place === 1 ? PRODUCER_KILL / this.setup.pace : Infinity);
      await until('the producer to finish', () => last() >= to || Date.now() > due || !program.running, {
        within: STUCK * 10,
        every: 20,
      });
      at = last();
      if (at >= to) return;
      if (!program.running) await program.exit();
      await program.end('SIGKILL');
      this.crew.note('producer killed', 'producer');
      this.producers[place] = this.crew.producer();
    }
  }

  #counts(queue: string) {
    return this.store.count(queue).catch(() => undefined);
  }

  async #waiting(queue: string): Promise<number> {
    const counts = await this.#counts(queue);
    return counts ? counts.ready + counts.active + counts.scheduled + counts.blocked : Infinity;
  }

  async #dead(queue: string): Promise<{ n: number; crashes: number }[]> {
    const dead: { n: number; crashes: number }[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.store.list(queue, { state: 'dead', limit: 1_000, cursor });
      dead.push(...page.jobs.map(({ id, crashes }) => ({ n: Number(id), crashes })));
      ({ cursor } = page);
    } while (cursor !== undefined);
    return dead;
  }

  async #progress(from: number, jobs: number, began: number, queue?: string): Promise<string> {
    const counts = queue === undefined ? undefined : await this.#counts(queue);
    const ended = queue === undefined ? jobs : (counts?.done ?? 0) + (counts?.dead ?? 0);
    const rate = Math.round((ended / (Date.now() - began)) * 1_000);
    const memory = Object.entries(await this.#memory()).map(([name, mb]) => `${name} ${mb}`);
    const faults = Object.values(this.#state.faults).reduce((sum, n) => sum + n, this.crew.faults.length);
    return `${from + ended} of ${this.setup.jobs} jobs, ${rate}/s, ${faults} faults; MB: ${memory.join(', ')}`;
  }

  async #memory(): Promise<Record<string, number>> {
    const memory: Record<string, number> = {
      producer: rss(this.producers[0]!.child.pid!),
      worker: rss(this.crew.steady.program.child.pid!),
    };
    if (this.target.pid) memory.server = rss(this.target.pid());
    memory.soak = rss(process.pid);
    memory.store = Math.round(await this.target.size());
    return memory;
  }
}

function rss(pid: number): number {
  const status = existsSync(`/proc/${pid}/status`) ? readFileSync(`/proc/${pid}/status`, 'utf8') : '';
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024);
}

function readState({ file, store, jobs }: SoakSetup): SoakState {
  if (!file || !existsSync(file)) return emptyState(store, jobs);
  return { ...(JSON.parse(readFileSync(file, 'utf8')) as SoakState), planned: jobs };
}

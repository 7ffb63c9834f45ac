import { join } from 'node:path';
import type { Program } from '../../support/processes.js';
import { until } from '../../support/wait.js';
import type { Lab } from '../support/lab.js';
import type { Fault } from './tally.js';

/** Lease and sweep of the workers; a busy machine must not look like a dead worker. */
export interface Times {
  lease: number;
  heartbeat: number;
  sweep: number;
}

/** A job that was held by this many dead workers is dead. */
export const MAX_CRASHES = 3;

/** No fault of ours: a worker that gave up. */
export const ENDED_BY_ITSELF = 'ended by itself';

interface Member {
  name: string;
  program: Program;
}

/** The processes of a soak: the first worker and the first producer live until the end, the others are killed and replaced. */
export class Crew {
  readonly faults: Fault[] = [];
  readonly journals = new Map<string, string>();
  readonly steady: Member;
  readonly #victims = new Map<number, Member>();
  readonly #killed = new Set<string>();
  #started = 0;
  #queue = '';
  #replacing = true;

  constructor(
    private readonly lab: Lab,
    private readonly urls: { direct: string; proxied: string },
    private readonly times: Times,
  ) {
    this.steady = this.#worker(urls.direct, true);
  }

  get living(): Set<string> {
    return new Set(
      [this.steady, ...this.#victims.values()].flatMap(({ name, program }) => (program.running ? [name] : [])),
    );
  }

  producer(): Program {
    return this.lab.program('../soak/programs/producer', { url: this.urls.direct });
  }

  async begin(queue: string, victims: number): Promise<void> {
    this.#queue = queue;
    this.#replacing = true;
    this.steady.program.tell(`queue ${queue}`);
    for (let place = 0; place < victims; place++) this.#start(place);
    await this.steady.program.line('ready');
  }

  /** Ends the victims; the steady worker goes on until `swept` says that nothing of them is left, and is idle then. */
  async end(swept: () => Promise<boolean>): Promise<void> {
    this.#replacing = false;
    for (const { program } of this.#victims.values()) await program.end('SIGKILL');
    this.#victims.clear();
    await until('the sessions of dead workers to be gone', swept, { within: 30_000, every: 50 });
    const idle = () => this.steady.program.lines.filter((line) => line === 'idle').length;
    const before = idle();
    this.steady.program.tell('idle');
    await until('the steady worker to be idle', () => idle() > before, { within: 30_000 });
  }

  note(kind: string, worker?: string, from = Date.now()): Fault {
    const fault = { kind, from, to: Date.now(), ...(worker === undefined ? {} : { worker }) };
    this.faults.push(fault);
    return fault;
  }

  kill(place: number): boolean {
    const victim = this.#victims.get(place);
    if (!victim?.program.running || !victim.program.lines.includes('ready')) return false;
    this.#killed.add(victim.name);
    victim.program.signal('SIGKILL');
    this.note('kill', victim.name);
    if (this.#replacing) this.#start(place);
    return true;
  }

  async suspend(place: number, ms: number): Promise<void> {
    const victim = this.#victims.get(place);
    if (!victim?.program.running || !victim.program.lines.includes('ready')) return;
    const fault = this.note('SIGSTOP', victim.name);
    fault.to = Infinity;
    victim.program.signal('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, ms));
    victim.program.signal('SIGCONT');
    fault.to = Date.now();
  }

  get pids(): number[] {
    return [this.steady, ...this.#victims.values()].map(({ program }) => program.child.pid!);
  }

  #worker(url: string, steady = false): Member {
    const name = `w${++this.#started}`;
    const file = join(this.lab.dir, `${name}.journal`);
    this.journals.set(name, file);
    const options = { ...this.times, concurrency: steady ? 100 : 10, maxCrashes: MAX_CRASHES };
    return { name, program: this.lab.program('../soak/programs/worker', { url, file, steady, options }) };
  }

  #start(place: number): void {
    const member = this.#worker(place % 2 ? this.urls.direct : this.urls.proxied);
    this.#victims.set(place, member);
    member.program.tell(`queue ${this.#queue}`);
    // A poison job ends it without our doing.
    member.program.child.once('exit', (_code, signal) => {
      if (this.#killed.delete(member.name) || !this.#replacing) return;
      this.note(signal === 'SIGKILL' ? 'poison' : ENDED_BY_ITSELF, member.name);
      this.#start(place);
    });
  }
}

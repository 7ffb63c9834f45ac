import { checkInteger } from '../../engine/input/check.js';
import { type Crore, open, type Queue } from '../../index.js';
import { STATES } from '../../job/job.js';
import type { Counts } from '../../store/store.js';
import { action, answer } from '../action.js';
import { program } from '../program.js';
import { DemoStage } from './demo-stage.js';

const QUEUE = 'demo';
const TICK = 500;
const KILL_EVERY = 6_000;
const SESSION = { lease: 2_000, heartbeat: 500, sweep: 300, maxCrashes: 20 };

interface Work {
  name: string;
  takes: number;
  luck: number;
}

/** A demo to watch: a producer and two worker processes, one of which is killed with -9 again and again. */
export async function run(argv: string[]): Promise<number> {
  if (argv[0] === '--worker') return demoWorker(argv[1]!);
  const command = program({
    name: 'crore demo',
    summary:
      'Run a demo in a temporary SQLite file: jobs are added, fail and are retried while workers are killed with -9.',
    examples: [
      ['crore demo', 'until Ctrl-C'],
      ['crore demo --for 20', 'for 20 seconds'],
    ],
  }).option('--for <seconds>', 'End after this many seconds (default: never).');
  action(command, demo);
  return answer(command, argv);
}

async function demo(options: { for?: string }): Promise<number> {
  const seconds = options.for === undefined ? undefined : checkInteger(Number(options.for), '--for', 1, 86_400);
  const stage = new DemoStage();
  const crore = await open(stage.url);
  const show = new Show(crore, stage, new Screen());
  try {
    await show.run(seconds);
  } finally {
    await show.end().finally(() => crore.close());
  }
  return 0;
}

async function demoWorker(url: string): Promise<number> {
  const crore = await open(url, { onError: () => {}, logger: false });
  crore.queue<Work>(QUEUE).work(
    async (job) => {
      await new Promise((resolve) => setTimeout(resolve, job.payload.takes));
      if (job.payload.luck < 0.1 && job.attempt < 3) throw new Error('random failure');
      return { by: process.pid };
    },
    { ...SESSION, concurrency: 5, onError: () => {} },
  );
  process.on('disconnect', () => process.exit(0));
  return new Promise(() => {});
}

class Show {
  readonly #queue: Queue<Work>;
  readonly #timers: NodeJS.Timeout[] = [];
  #named = 0;
  /** Jobs the store has accepted. */
  #added = 0;
  #producing: Promise<void> = Promise.resolve();

  constructor(
    crore: Crore,
    private readonly stage: DemoStage,
    private readonly screen: Screen,
  ) {
    this.#queue = crore.queue(QUEUE);
  }

  /** Resolves when the time is over or the demo is asked to end; rejects when its store breaks. */
  async run(seconds: number | undefined): Promise<void> {
    this.screen.say(
      'a producer and two worker processes on one SQLite file; one worker is killed -9 every few seconds',
    );
    this.stage.startWorker();
    let victim = this.stage.startWorker();
    this.#every(100, () => {
      this.#producing = this.#producing
        .then(() => this.#produce())
        .catch((error: Error) => this.screen.say(`a batch was refused: ${error.message}`));
    });
    this.#every(KILL_EVERY, () => {
      victim.kill('SIGKILL');
      this.screen.say(`worker ${victim.pid} killed -9; its jobs return to the front when its lease ends`);
      victim = this.stage.startWorker();
    });
    await new Promise<void>((resolve, reject) => {
      this.#every(TICK, () => this.#draw().catch(reject));
      if (seconds !== undefined) this.#timers.push(setTimeout(resolve, seconds * 1_000));
      void this.stage.ended.then(resolve);
    });
  }

  async end(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.stage.killWorkers();
    await this.#producing; // adds in flight finish before anything is counted
    const counts = await this.#queue.count();
    const accounted = STATES.reduce((sum, state) => sum + counts[state], 0);
    this.screen.end(`${this.#added} jobs added, ${accounted} accounted for: ${line(counts)}`);
  }

  #every(ms: number, act: () => unknown): void {
    this.#timers.push(setInterval(act, ms));
  }

  async #produce(): Promise<void> {
    const jobs = Array.from({ length: 3 }, () => ({
      payload: { name: `work ${++this.#named}`, takes: 20 + Math.random() * 120, luck: Math.random() },
      backoff: '500ms',
      delay: Math.random() < 0.1 ? '2s' : 0,
      keep: { count: 1_000_000 },
    }));
    this.#added += (await this.#queue.addMany(jobs)).length;
  }

  async #draw(): Promise<void> {
    this.screen.counts(await this.#queue.count());
  }
}

function line(counts: Counts): string {
  return STATES.map((state) => `${state} ${counts[state]}`).join('  ');
}

/** One changing line on a terminal, plain lines otherwise. */
class Screen {
  readonly #live = process.stdout.isTTY === true;
  #done = 0;

  say(text: string): void {
    process.stdout.write(`${this.#live ? '\r\x1b[K' : ''}${text}\n`);
  }

  counts(counts: Counts): void {
    const rate = ((counts.done - this.#done) * 1_000) / TICK;
    this.#done = counts.done;
    const text = `${line(counts)}  (${rate.toFixed(0)} done/s)`;
    process.stdout.write(this.#live ? `\r\x1b[K${text}` : `${text}\n`);
  }

  end(text: string): void {
    this.say(text);
  }
}

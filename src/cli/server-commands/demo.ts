import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkInteger } from '../../engine/check.js';
import { CroreError } from '../../errors.js';
import { type Crore, open, type Queue } from '../../index.js';
import { STATES } from '../../job/job.js';
import type { Counts } from '../../store/store.js';

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
  const seconds = readSeconds(argv);
  const dir = mkdtempSync(join(tmpdir(), 'crore-demo-'));
  const crore = await open(`sqlite:${join(dir, 'demo.db')}`);
  const show = new Screen();
  const stage = new Stage(crore, `sqlite:${join(dir, 'demo.db')}`, show);
  try {
    await stage.run(seconds);
  } finally {
    await stage.end();
    await crore.close();
    rmSync(dir, { recursive: true, force: true });
  }
  return 0;
}

function readSeconds(argv: string[]): number | undefined {
  if (argv.length === 0) return undefined;
  if (argv[0] !== '--for' || argv.length !== 2)
    throw new CroreError('BAD_OPTION', `demo: unknown option '${argv.join(' ')}' (known: --for SECONDS)`);
  return checkInteger(Number(argv[1]), '--for', 1, 86_400);
}

async function demoWorker(url: string): Promise<number> {
  const crore = await open(url, { onError: () => {} });
  crore.queue<Work>(QUEUE).work(
    async (job) => {
      await new Promise((resolve) => setTimeout(resolve, job.payload.takes));
      if (job.payload.luck < 0.1 && job.attempt < 3) throw new Error('bad luck');
      return { by: process.pid };
    },
    { ...SESSION, concurrency: 5, onError: () => {} },
  );
  process.on('disconnect', () => process.exit(0));
  return new Promise(() => {});
}

class Stage {
  readonly #queue: Queue<Work>;
  readonly #children = new Set<ChildProcess>();
  readonly #timers: NodeJS.Timeout[] = [];
  #named = 0;
  /** Jobs the store has accepted. */
  #added = 0;
  #producing: Promise<void> = Promise.resolve();

  constructor(
    crore: Crore,
    private readonly url: string,
    private readonly screen: Screen,
  ) {
    this.#queue = crore.queue(QUEUE);
  }

  async run(seconds: number | undefined): Promise<void> {
    this.screen.say(
      'a producer and two worker processes on one SQLite file; one worker is killed -9 every few seconds',
    );
    this.#start();
    let victim = this.#start();
    this.#timers.push(
      setInterval(() => {
        this.#producing = this.#producing
          .then(() => this.#produce())
          .catch((error: Error) => this.screen.say(`a batch was refused: ${error.message}`));
      }, 100),
    );
    this.#timers.push(setInterval(() => void this.#draw(), TICK));
    this.#timers.push(
      setInterval(() => {
        victim.kill('SIGKILL');
        this.screen.say(`worker ${victim.pid} killed -9; its jobs return to the front when its lease ends`);
        victim = this.#start();
      }, KILL_EVERY),
    );
    await new Promise<void>((resolve) => {
      if (seconds !== undefined) this.#timers.push(setTimeout(resolve, seconds * 1_000));
      process.once('SIGINT', resolve);
      process.once('SIGTERM', resolve);
    });
  }

  async end(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    for (const child of this.#children) child.kill('SIGKILL');
    await this.#producing; // adds in flight finish before anything is counted
    const counts = await this.#queue.count();
    const accounted = STATES.reduce((sum, state) => sum + counts[state], 0);
    this.screen.end(`${this.#added} jobs added, ${accounted} accounted for: ${line(counts)}`);
  }

  #start(): ChildProcess {
    const child = fork(fileURLToPath(new URL('../../../bin/crore', import.meta.url)), ['demo', '--worker', this.url], {
      stdio: ['ignore', 2, 2, 'ipc'],
    });
    this.#children.add(child);
    child.on('exit', () => this.#children.delete(child));
    return child;
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

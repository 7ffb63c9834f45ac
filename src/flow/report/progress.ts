import type { NodeOutcome, NodeTask } from '../executors/executor.js';
import type { NodeEnd } from '../graph/node-spec.js';
import { now } from '../run/clock.js';
import type { Run } from '../run/run.js';
import type { Watcher } from './watcher.js';

export interface Screen {
  /** Writes results and progress. */
  write: (text: string) => void;
  /** The output is a terminal, so one line can be updated in place. */
  live: boolean;
  columns: () => number;
}

/** Flows larger than this print a line now and then instead of one per node. */
const TALKATIVE = 1_000;
const DRAW = 100;
const PLAIN = 2_000;
/** How many failures are repeated at the end. */
const SHOWN = 20;

/**
 * Progress for people: a line that is updated in place on a terminal, plain lines otherwise; failures when they happen
 * and again at the end.
 */
export class Progress implements Watcher {
  #run: Run | undefined;
  #timer: NodeJS.Timeout | undefined;
  #restored = 0;
  readonly #failures: { id: string; error: string }[] = [];

  constructor(
    private readonly screen: Screen,
    private readonly quiet: boolean,
    private readonly total: (run: Run) => number = (run) => run.graph.ids.length,
  ) {}

  begin(run: Run): void {
    this.#run = run;
    this.#restored = run.counts.done;
    if (this.#restored > 0) this.said(`${this.#restored} of ${this.total(run)} nodes were done before`);
    if (this.quiet) return;
    this.#timer = setInterval(() => this.#draw(), this.screen.live ? DRAW : PLAIN);
    this.#timer.unref();
  }

  ended(end: NodeEnd, outcome: NodeOutcome): void {
    this.#output(end, outcome);
    if (end.state === 'failed') {
      const error = end.error ?? `exit ${end.exit}`;
      this.#failures.push({ id: end.id, error });
      this.said(
        `failed  ${end.id}  ${took(end)}: ${error}${end.attempts > 1 ? ` (after ${end.attempts} attempts)` : ''}`,
      );
    } else if (this.#talks)
      this.said(`${end.cached ? 'cached' : 'done'}    ${end.id}${end.cached ? '' : `  ${took(end)}`}`);
  }

  retried(task: NodeTask, outcome: NodeOutcome, wait: number): void {
    this.said(`retry   ${task.id}  in ${(wait / 1_000).toFixed(1)} s: ${outcome.error ?? `exit ${outcome.exit}`}`);
  }

  said(text: string): void {
    if (!this.quiet) this.#print(`${text}\n`);
  }

  finish(run: Run): void {
    clearInterval(this.#timer);
    const { done, failed, skipped, cancelled, cached } = run.counts;
    const shown = this.#failures.length > 1 ? this.#failures : [];
    if (shown.length > 0)
      this.#print(
        `\nfailed nodes:\n${shown
          .slice(0, SHOWN)
          .map(({ id, error }) => `  ${id}: ${error}\n`)
          .join('')}`,
      );
    if (shown.length > SHOWN) this.#print(`  and ${shown.length - SHOWN} more\n`);
    const others = Object.entries({ failed, skipped, cancelled, cached }).filter(([, count]) => count > 0);
    const words = others.map(([word, count]) => `, ${count} ${word}`).join('');
    const state = run.halted === undefined ? '' : `${run.halted}: `;
    if (!this.quiet || failed > 0)
      this.#print(
        `${state}${done} of ${this.total(run)} done${words} in ${((now() - run.startedAt) / 1_000).toFixed(1)} s\n`,
      );
  }

  get #talks(): boolean {
    return !this.quiet && !this.screen.live && this.#run !== undefined && this.total(this.#run) <= TALKATIVE;
  }

  /** Prints a command's whole output after it has finished, so that outputs do not mix. */
  #output({ id }: NodeEnd, { stdout, stderr }: NodeOutcome): void {
    const text = `${stdout ?? ''}${stderr ?? ''}`;
    if (this.quiet || text === '') return;
    const lines = text.endsWith('\n') ? text.slice(0, -1) : text;
    this.#print(`${lines.replace(/^/gm, `${id} | `)}\n`);
  }

  #print(text: string): void {
    this.screen.write(this.screen.live ? `\r\x1b[K${text}` : text);
  }

  #draw(): void {
    const run = this.#run!;
    const text = progressLine(run, this.total(run), this.#restored, now());
    if (this.screen.live) this.screen.write(`\r\x1b[K${text.slice(0, this.screen.columns() - 1)}`);
    else if (!this.#talks || run.running.size > 0) this.screen.write(`${text}\n`);
  }
}

/** How many nodes are finished, of how many, the estimated remaining time, and the node that has been running longest. */
export function progressLine(run: Run, total: number, restored: number, time: number): string {
  const { done, failed, skipped, cancelled } = run.counts;
  const ended = done + failed + skipped + cancelled;
  const fresh = ended - restored;
  const elapsed = time - run.startedAt;
  const eta = fresh > 0 ? `, ${duration(((total - ended) * elapsed) / fresh)} to go` : '';
  let longest: NodeTask | undefined;
  for (const task of run.running) if (!longest || task.startedAt < longest.startedAt) longest = task;
  const bad = failed > 0 ? `, ${failed} failed` : '';
  const slow = longest ? `; longest ${longest.id} ${duration(time - longest.startedAt)}` : '';
  const percent = total === 0 ? 100 : Math.floor((ended * 100) / total);
  return `[${ended}/${total}] ${percent}% ${run.running.size} running${bad}${eta}${slow}`;
}

export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, '0')}s`;
  return `${Math.floor(seconds / 3_600)}h${String(Math.floor((seconds % 3_600) / 60)).padStart(2, '0')}m`;
}

function took({ seconds }: NodeEnd): string {
  return `${seconds.toFixed(2)} s`;
}

import type { NodeOutcome, NodeTask } from '../executors/executor.js';
import type { NodeEnd } from '../graph/node-spec.js';
import { now } from '../run/clock.js';
import type { Run } from '../run/run.js';
import { Failures } from './failures.js';
import { type Colour, type Output, Screen } from './screen.js';
import { type Status, statusLine } from './status-line.js';
import type { Watcher } from './watcher.js';

/** Flows larger than this print a line now and then instead of one per node. */
const TALKATIVE = 1_000;
/** Time between two updates of the status, in milliseconds: on a terminal, and as plain lines. */
const DRAW = 100;
const PLAIN = 2_000;
/** The width of plain lines. */
const PLAIN_COLUMNS = 120;

/**
 * Progress for people: a line that is updated in place on a terminal, plain lines otherwise; failures when they happen
 * and again at the end.
 */
export class Progress implements Watcher {
  readonly screen: Screen;
  #run: Run | undefined;
  #timer: NodeJS.Timeout | undefined;
  #restored = 0;
  readonly #failures = new Failures();

  constructor(
    output: Output,
    private readonly quiet: boolean,
    private readonly total: (run: Run) => number = (run) => run.graph.ids.length,
  ) {
    this.screen = new Screen(output);
  }

  begin(run: Run): void {
    this.#run = run;
    this.#restored = run.counts.done;
    if (this.#restored > 0) this.said(`${this.#restored} of ${this.total(run)} nodes were already done`);
    if (this.quiet) return;
    this.#timer = setInterval(() => this.#draw(run), this.screen.live ? DRAW : PLAIN);
    this.#timer.unref();
  }

  ended(end: NodeEnd, outcome: NodeOutcome, task: NodeTask): void {
    this.#output(end, outcome);
    if (end.state === 'failed') {
      this.#failures.add(end, task);
      const attempts = end.attempts > 1 ? ` (after ${end.attempts} attempts)` : '';
      this.#event('failed', 'red', `${end.id}  ${took(end)}: ${end.error ?? `exit ${end.exit}`}${attempts}`);
    } else if (this.#talks) {
      if (end.cached) this.#event('cached', 'dim', end.id);
      else this.#event('done', 'green', `${end.id}  ${took(end)}`);
    }
  }

  retried(task: NodeTask, outcome: NodeOutcome, wait: number): void {
    const why = outcome.error ?? `exit ${outcome.exit}`;
    this.#event('retry', 'yellow', `${task.id}  in ${(wait / 1_000).toFixed(1)} s: ${why}`);
  }

  said(text: string): void {
    if (!this.quiet) this.screen.print(`${text}\n`);
  }

  finish(run: Run): void {
    clearInterval(this.#timer);
    if (!this.quiet && this.screen.live) this.screen.status('');
    const failures = this.#failures.text(this.screen.paint);
    if (failures !== '') this.screen.print(failures);
    if (!this.quiet || run.counts.failed > 0) this.screen.print(this.#summary(run));
  }

  #summary(run: Run): string {
    const { done, failed, skipped, cancelled, cached } = run.counts;
    const others = Object.entries({ failed, skipped, cancelled, cached }).filter(([, count]) => count > 0);
    const words = others.map(([word, count]) => `, ${count} ${word}`).join('');
    const state = run.halted === undefined ? '' : `${run.halted}: `;
    const text = `${state}${done} of ${this.total(run)} done${words}`;
    const seconds = ((now() - run.startedAt) / 1_000).toFixed(1);
    return `${this.screen.paint(text, run.exit === 0 ? 'green' : 'red')} in ${seconds} s\n`;
  }

  get #talks(): boolean {
    if (this.quiet || this.screen.live || this.#run === undefined) return false;
    const nodes = this.total(this.#run);
    return nodes <= TALKATIVE && nodes + this.#run.items.total <= TALKATIVE;
  }

  #event(word: string, colour: Colour, text: string): void {
    this.said(`${this.screen.paint(word, colour)}${' '.repeat(8 - word.length)}${text}`);
  }

  /** Prints a command's whole output after it has finished, so that outputs do not mix. */
  #output({ id }: NodeEnd, { stdout, stderr }: NodeOutcome): void {
    const text = `${stdout ?? ''}${stderr ?? ''}`;
    if (this.quiet || text === '') return;
    const lines = text.endsWith('\n') ? text.slice(0, -1) : text;
    const name = this.screen.paint(`${id} |`, 'dim');
    this.screen.print(`${lines.replace(/^/gm, () => `${name} `)}\n`);
  }

  #draw(run: Run): void {
    const { screen } = this;
    if (screen.live) screen.status(statusLine(this.#status(run), screen.columns, screen.paint));
    else if (!this.#talks || run.running.size > 0) screen.print(`${statusLine(this.#status(run), PLAIN_COLUMNS)}\n`);
  }

  #status(run: Run): Status {
    const { counts, items, running, startedAt } = run;
    return {
      ended: counts.done + counts.failed + counts.skipped + counts.cancelled + items.ended,
      total: this.total(run) + items.total,
      failed: counts.failed,
      restored: this.#restored + items.restored,
      running,
      startedAt,
      now: now(),
    };
  }
}

function took({ seconds }: NodeEnd): string {
  return `${seconds.toFixed(2)} s`;
}

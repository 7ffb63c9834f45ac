import type { NodeEnd } from '../graph/node-spec.js';
import type { Run } from '../run/run.js';
import type { Watcher } from './watcher.js';

/** Writes a Chrome trace: one row per slot, one bar per node. Open it in ui.perfetto.dev or chrome://tracing. */
export class Trace implements Watcher {
  readonly #lines: string[] = [];
  readonly #rows = new Map<string, number[]>();
  readonly #processes = new Map<string, number>();

  constructor(private readonly write: (text: string) => void) {
    write('[\n');
  }

  ended(end: NodeEnd): void {
    if (end.cached) return;
    const { id, state, attempts, start, seconds, exit, worker = 'runner' } = end;
    const pid = this.#process(worker);
    const event = {
      name: id,
      cat: state,
      ph: 'X',
      ts: Math.round(start * 1_000),
      dur: Math.round(seconds * 1e6),
      pid,
      tid: this.#row(worker, start, seconds),
      args: { attempts, exit },
    };
    this.#put(event);
    if (this.#lines.length >= 1_000) this.#flush();
  }

  finish(run: Run): void {
    const args = { name: run.graph.name };
    this.#put({ name: 'flow', ph: 'M', ts: 0, pid: 0, tid: 0, args });
    this.#flush();
    // The last line has no comma, because the format is a JSON array.
    this.write(`${JSON.stringify({ name: 'end', ph: 'i', s: 'g', ts: Date.now() * 1_000, pid: 1, tid: 0 })}\n]\n`);
  }

  #process(worker: string): number {
    const known = this.#processes.get(worker);
    if (known !== undefined) return known;
    const pid = this.#processes.size + 1;
    this.#processes.set(worker, pid);
    this.#put({ name: 'process_name', ph: 'M', pid, tid: 0, args: { name: worker } });
    return pid;
  }

  /** The first row whose last bar ended before this one began. */
  #row(worker: string, start: number, seconds: number): number {
    const rows = this.#rows.get(worker) ?? [];
    this.#rows.set(worker, rows);
    const free = rows.findIndex((end) => end <= start + 0.001);
    const row = free < 0 ? rows.length : free;
    rows[row] = start + seconds * 1_000;
    return row;
  }

  #put(event: object): void {
    this.#lines.push(`${JSON.stringify(event)},\n`);
  }

  #flush(): void {
    this.write(this.#lines.splice(0).join(''));
  }
}

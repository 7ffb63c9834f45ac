import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { CroreError } from '../../errors.js';
import type { Graph } from '../../flow/graph/graph.js';
import { exportGraph } from '../../flow/report/graph-export.js';
import { Joblog, JsonEvents } from '../../flow/report/node-events.js';
import { Progress } from '../../flow/report/progress.js';
import { Trace } from '../../flow/report/trace.js';
import type { Watcher } from '../../flow/report/watcher.js';

export interface ReportOptions {
  json?: boolean;
  quiet?: boolean;
  trace?: string;
  graph?: string;
  joblog?: string;
}

/** Creates the requested reports; opens the files now, so that an invalid name does not stop a flow halfway. */
export function makeReports(graph: Graph, options: ReportOptions, only: number | undefined): Watcher[] {
  const watchers: Watcher[] = [];
  // Functions print for themselves, and the output may have no reader, as after `| head -1`: the flow then continues silently.
  const functions = graph.specs.some(({ work }) => work.kind === 'function');
  if (functions || !options.quiet) for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});
  const total = () => only ?? graph.ids.length;
  const events = new Gathered('stdout');
  const talk = new Gathered(options.json ? 'stderr' : 'stdout');
  if (options.json) watchers.push(new JsonEvents((text) => events.write(text)));
  const screen = {
    get live() {
      return talk.stream.isTTY === true;
    },
    columns: () => talk.stream.columns || 80,
    write: (text: string) => talk.write(text),
  };
  watchers.push(new Progress(screen, options.quiet === true || options.json === true, total));
  if (options.trace !== undefined) watchers.push(intoFile(options.trace, (write) => new Trace(write)));
  if (options.joblog !== undefined) watchers.push(intoFile(options.joblog, (write) => new Joblog(write)));
  if (options.graph !== undefined) {
    const file = options.graph;
    exportGraph(graph, [], file); // refuses now what could not be drawn later
    watchers.push({ finish: (run) => writeFileSync(file, exportGraph(run.graph, run.scheduler.states, file)) });
  }
  watchers.push({
    finish: () => {
      events.flush();
      talk.flush();
    },
  });
  return watchers;
}

/**
 * Combines the output of one turn of the event loop into one write. Opens the stream on first use, so a quiet flow opens none.
 */
class Gathered {
  #pending = '';
  #stream: NodeJS.WriteStream | undefined;

  constructor(private readonly name: 'stdout' | 'stderr') {}

  get stream(): NodeJS.WriteStream {
    this.#stream ??= process[this.name].on('error', () => {});
    return this.#stream;
  }

  write(text: string): void {
    if (this.#pending === '') setImmediate(() => this.flush());
    this.#pending += text;
  }

  flush(): void {
    if (this.#pending === '') return;
    const text = this.#pending;
    this.#pending = '';
    this.stream.write(text);
  }
}

function intoFile(file: string, make: (write: (text: string) => void) => Watcher): Watcher {
  let handle: number;
  try {
    handle = openSync(file, 'w');
  } catch (error) {
    throw new CroreError('BAD_OPTION', `cannot write ${file}: ${(error as NodeJS.ErrnoException).code}`);
  }
  const watcher = make((text) => writeSync(handle, text));
  const finish = watcher.finish?.bind(watcher);
  watcher.finish = async (run) => {
    await finish?.(run);
    closeSync(handle);
  };
  return watcher;
}

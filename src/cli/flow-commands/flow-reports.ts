import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { CroreError } from '../../errors.js';
import type { Graph } from '../../flow/graph/graph.js';
import { checkExport, exportGraph } from '../../flow/report/graph-export.js';
import { Joblog, JsonEvents } from '../../flow/report/node-events.js';
import { Progress } from '../../flow/report/progress.js';
import { Trace } from '../../flow/report/trace.js';
import type { Watcher } from '../../flow/report/watcher.js';
import { divert, Gathered } from './terminal.js';

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
  const quiet = options.quiet === true || options.json === true;
  const progress = new Progress(talk, quiet, total);
  if (functions && !quiet) watchers.push(diverting(talk, progress));
  watchers.push(progress);
  if (options.trace !== undefined) watchers.push(intoFile(options.trace, (write) => new Trace(write)));
  if (options.joblog !== undefined) watchers.push(intoFile(options.joblog, (write) => new Joblog(write)));
  if (options.graph !== undefined) {
    const file = options.graph;
    checkExport(graph, file); // refuses now what could not be drawn later
    watchers.push({
      finish: async (run) => writeFileSync(file, await exportGraph(run.graph, run.scheduler.states, file)),
    });
  }
  watchers.push({
    finish: () => {
      events.flush();
      talk.flush();
    },
  });
  return watchers;
}

/** While the flow runs, leads what functions print on a terminal to the lines above the status. */
function diverting(talk: Gathered, { screen }: Progress): Watcher {
  let undo = () => {};
  return {
    begin: () => {
      if (talk.live) undo = divert((lines) => screen.print(lines));
    },
    finish: () => undo(),
  };
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

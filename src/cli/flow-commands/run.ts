import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { CroreError } from '../../errors.js';
import type { Launch } from '../../flow/executors/launchers.js';
import { parseRenewal, renewalText } from '../../flow/executors/renewal.js';
import { type Graph, onlyNode } from '../../flow/graph/graph.js';
import { graphText } from '../../flow/graph/graph-text.js';
import { isModule, readSource } from '../../flow/input/source.js';
import { DoneMark } from '../../flow/run/done-mark.js';
import { localState, makeStateFolder } from '../../flow/run/local-state.js';
import { findNode, type Started, type StartOptions, startFlow } from '../../flow/run/start.js';
import { contextOf } from '../../job/trace-context.js';
import { randomToken } from '../../process/random.js';
import { givenStore } from '../action.js';
import { whole } from '../option-values.js';
import { parse, program } from '../program.js';
import { makeReports, type ReportOptions } from './flow-reports.js';

export interface Options extends ReportOptions {
  jobs?: string;
  store?: string;
  resume?: boolean | string;
  keepGoing?: boolean;
  dryRun?: boolean;
  launcher: string[];
  renew?: string;
  only?: string;
  force?: boolean;
  workload?: string;
  schedule?: string;
  inline?: boolean;
}

const INTERRUPTED = 130;

export async function run(argv: string[]): Promise<number> {
  let code = 0;
  const command = program({
    name: 'crore run',
    summary: 'Run a flow: commands, functions and jobs with dependencies between them.',
    examples: [
      ['crore run pipeline.yaml -j 8', 'eight nodes at once'],
      ['crore run pipeline.yaml --resume', 'continue where it failed or was stopped'],
      ['crore run --workload commands.csv --schedule edges.csv', 'two CSV files: id,command and from,to'],
      ['crore run big.yaml -j 32 --store redis://db --launcher "ssh host"', 'with workers on another machine'],
    ],
  })
    .argument('[file]', 'flow file: .yaml, .json, .ts, .js or .mjs')
    .option('-j, --jobs <n>', 'number of nodes to run at once (default: one per core; 0: only on joined workers)')
    .option('--store <url>', 'store for the state of the flow, where workers can join (default: files in .crore)')
    .option('--resume [id]', 'continue the unfinished flow without running finished nodes again')
    .option('-k, --keep-going', 'after a failure, run all nodes that do not depend on it')
    .option('-n, --dry-run', 'print what would run, and run nothing')
    .option('--only <node>', 'run only this node and what it needs')
    .option('--force', 'run cached nodes again')
    .option('--workload <csv>', 'CSV file with the columns id,command')
    .option('--schedule <csv>', 'CSV file with the columns from,to')
    .option(
      '--launcher <command>',
      'start a worker with this command, such as "ssh host"; may be repeated',
      collect,
      [],
    )
    .option('--renew <limits>', 'replace a worker after tasks=N,seconds=N,rss=MB')
    .option('--inline', 'run functions in this process')
    .option('--json', 'print one JSON object for each node when it ends')
    .option('--trace <file>', 'write a Chrome trace')
    .option('--graph <file>', 'draw the graph with its states: .svg, .dot or .mmd')
    .option('--joblog <file>', 'write a line for each node when it ends')
    .option('-q, --quiet', 'print failures only')
    .action(async (file: string | undefined, options: Options) => {
      code = await runFile(file, options);
    });
  await parse(command, argv);
  return code;
}

function collect(value: string, all: string[]): string[] {
  return [...all, value];
}

async function runFile(file: string | undefined, options: Options): Promise<number> {
  const graph = await readSource({ file, workload: options.workload, schedule: options.schedule });
  return runGraph(graph, file ?? options.workload!, options);
}

/** Runs a graph with the given options; returns the exit code. */
export async function runGraph(graph: Graph, source: string, options: Options): Promise<number> {
  // One trace for the whole run: commands inherit it, jobs carry it.
  if (!contextOf(process.env)) process.env.TRACEPARENT = newTraceparent();
  const { start, finish } = prepare(graph, source, options);
  if (options.dryRun) {
    const { dryRun } = await import('../../flow/run/dry-run.js');
    process.stdout.write(await dryRun(graph, start));
    return 0;
  }
  const { localState: place } = start;
  const done = place && new DoneMark(source, describeFlow(graph, source));
  if (options.resume === true && done?.isSet && !place?.hasState()) {
    if (!options.quiet && !options.json)
      process.stderr.write(`${source} is done: nothing to resume; omit --resume to run it again\n`);
    return 0;
  }
  done?.clear();
  if (place) makeStateFolder(source);
  const started = await startFlow(graph, start).catch((error) => {
    start.localState?.removeIfEmpty();
    throw error;
  });
  const release = hearSignals(started);
  try {
    const state = await started.finish();
    finish(state === 'done');
    if (state === 'done' && options.only === undefined) done?.set();
    if (state !== 'done' && start.localState && !options.json && !options.quiet)
      process.stderr.write(`finished nodes are kept: 'crore run ${source} --resume' continues the flow\n`);
    return started.run.halted === undefined ? started.run.exit : INTERRUPTED;
  } catch (error) {
    // If nothing was done, there is nothing to resume.
    if (started.run.counts.done === 0) finish(true);
    throw error;
  } finally {
    release();
  }
}

/** Identifies a flow, to detect changes: the graph, and the file, because functions are not part of the graph. */
function describeFlow(graph: Graph, source: string): string {
  return `${graphText(graph)}\n${readFileSync(source, 'utf8')}`;
}

function prepare(
  graph: Graph,
  source: string,
  options: Options,
): { start: StartOptions; finish: (success: boolean) => void } {
  const slots = options.jobs === undefined ? availableParallelism() : whole(options.jobs, '--jobs', 0, 10_000)!;
  const store = givenStore(options);
  const place = store === undefined ? localState(source) : undefined;
  const only = options.only === undefined ? undefined : onlyNode(graph, findNode(graph, options.only)).size;
  const launches = launchesOf(options, store ?? place!.store, slots);
  if (slots === 0 && store === undefined)
    throw new CroreError('BAD_OPTION', '-j 0 needs --store: only workers that join through the store can run nodes');
  const start: StartOptions = {
    slots: launches.length > 0 ? 0 : slots,
    store: store ?? place!.store,
    localState: place,
    file: source,
    module: isModule(source) && !options.inline ? source : undefined,
    keepGoing: options.keepGoing,
    resume: options.resume,
    force: options.force,
    only: options.only,
    renewal: options.renew === undefined ? undefined : parseRenewal(options.renew),
    launches,
    watchers: makeReports(graph, options, only),
  };
  return { start, finish: (success) => success && place?.remove() };
}

/** Distributes the slots over the launchers; each starts one worker. */
function launchesOf({ launcher, renew }: Options, store: string, slots: number): Launch[] {
  if (launcher.length === 0) return [];
  const program = [process.execPath, fileURLToPath(new URL('../../../bin/crore', import.meta.url))];
  const limits = renew === undefined ? [] : ['--renew', renewalText(parseRenewal(renew))];
  return launcher.map((template, i) => {
    const share = Math.max(1, Math.floor((slots + i) / launcher.length));
    return {
      template,
      worker: [...program, 'worker', '--store', store, '-j', String(share), '--tied', '--quiet', ...limits],
    };
  });
}

/** The first signal stops the flow and keeps its state; a second one does not wait. */
function hearSignals(started: Started): () => void {
  let count = 0;
  const stop = (): void => {
    if (++count > 1) process.exit(INTERRUPTED);
    started.run.halt('interrupted');
  };
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const signal of signals) process.on(signal, stop);
  return () => {
    for (const signal of signals) process.off(signal, stop);
  };
}

function newTraceparent(): string {
  const random = `${randomToken().toString('hex')}${randomToken().toString('hex')}`;
  return `00-${random.slice(0, 32)}-${random.slice(32, 48)}-01`;
}

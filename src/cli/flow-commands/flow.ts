import { writeFileSync } from 'node:fs';
import { CroreError } from '../../errors.js';
import type { FlowInfo, Journal } from '../../flow/journal/journal.js';
import { openJournal } from '../../flow/journal/open.js';
import { loadGraph } from '../../flow/journal/stored-graph.js';
import { exportGraph } from '../../flow/report/graph-export.js';
import { reportOf } from '../../flow/report/node-events.js';
import { endedNodes, nodeStates } from '../../flow/report/node-states.js';
import { hideFromProcessList, mustExist, storeUrl } from '../action.js';
import { parse, program } from '../program.js';
import { runGraph } from './run.js';

interface Options {
  store?: string;
  json?: boolean;
  jobs?: string;
  keepGoing?: boolean;
}

export async function run(argv: string[]): Promise<number> {
  let code = 0;
  const command = program({
    name: 'crore flow',
    summary: 'List, show, draw, cancel and retry the flows of a store.',
    examples: [
      ['crore flow ls --store redis://db', 'list the flows'],
      ['crore flow graph build-1a2b3c4d out.svg --store redis://db', 'draw a flow with the states of its nodes'],
      ['crore flow retry build-1a2b3c4d --store redis://db -j 8', 'run the failed nodes and those that depend on them'],
    ],
  });
  const add = (usage: string, summary: string) =>
    command
      .command(usage)
      .description(summary)
      .option('--store <url>', 'sqlite:FILE, redis://… (default: $CRORE_STORE, else sqlite:crore.db)')
      .option('--json', 'Print one JSON object per line.');
  add('ls', 'List the flows of the store.').action(list);
  add('show <id>', 'Show how the nodes of a flow ended.').action(show);
  add('graph <id> <file>', 'Draw a flow with its states: .svg, .dot or .mmd.').action(draw);
  add('cancel <id>', 'Cancel a flow; its runner stops within a second.').action(cancel);
  add('retry <id>', 'Run the nodes of a flow that failed or did not run, in this process.')
    .option('-j, --jobs <n>', 'number of nodes to run at once')
    .option('-k, --keep-going', 'after a failure, run all nodes that do not depend on it')
    .action(async (id: string, options: Options) => {
      code = await retry(id, options);
    });
  await parse(command, argv);
  return code;
}

async function withJournal<T>(options: Options, work: (journal: Journal, url: string) => Promise<T>): Promise<T> {
  const url = hideFromProcessList(storeUrl(options));
  mustExist(url);
  const journal = await openJournal(url);
  try {
    return await work(journal, url);
  } finally {
    await journal.close();
  }
}

async function list(options: Options): Promise<void> {
  const flows = await withJournal(options, (journal) => journal.list());
  for (const info of flows) process.stdout.write(options.json ? `${JSON.stringify(info)}\n` : `${lineOf(info)}\n`);
  if (flows.length === 0 && !options.json) process.stdout.write('no flows\n');
}

function lineOf({ id, state, size, created, file, counts }: FlowInfo): string {
  const words = Object.entries(counts ?? {}).filter(([, count]) => count > 0);
  const ends = words.map(([word, count]) => `${count} ${word}`).join(', ');
  return `${id}  ${state}  ${size} nodes${ends === '' ? '' : ` (${ends})`}  ${new Date(created).toISOString()}  ${file}`;
}

async function show(id: string, options: Options): Promise<void> {
  await withJournal(options, async (journal) => {
    const info = await mustGet(journal, id);
    const ends = [...new Map((await journal.ends(id)).map((end) => [end.id, end])).values()];
    if (!options.json) process.stdout.write(`${lineOf(info)}\n`);
    for (const end of ends) {
      const { attempts, seconds, exit, error, output } = end;
      const line = `  ${end.state.padEnd(6)}  ${end.id}  ${seconds.toFixed(2)} s  attempts ${attempts}  exit ${exit}${error ? `: ${error}` : ''}`;
      const lines = output === undefined ? '' : `${output.replace(/^/gm, '          | ')}\n`;
      process.stdout.write(
        options.json ? `${JSON.stringify({ ...reportOf(end), error, output })}\n` : `${line}\n${lines}`,
      );
    }
  });
}

async function draw(id: string, file: string, options: Options): Promise<void> {
  await withJournal(options, async (journal) => {
    const info = await mustGet(journal, id);
    const graph = await loadGraph(journal, info);
    const ended = endedNodes(graph, await journal.ends(id));
    writeFileSync(file, await exportGraph(graph, nodeStates(graph, { ended }), file));
  });
}

async function cancel(id: string, options: Options): Promise<void> {
  await withJournal(options, async (journal) => {
    await mustGet(journal, id);
    if (!(await journal.cancel(id)))
      throw new CroreError('NOT_FOUND', `flow '${id}' has already ended: nothing to cancel`);
  });
}

async function retry(id: string, options: Options): Promise<number> {
  const [graph, info, url] = await withJournal(options, async (journal, store) => {
    const known = await mustGet(journal, id);
    if (known.state === 'done') throw new CroreError('NOT_FOUND', `flow '${id}' is done: nothing to retry`);
    return [await loadGraph(journal, known), known, store] as const;
  });
  return runGraph(graph, info.file || 'flow', { ...options, store: url, resume: id, launcher: [] });
}

async function mustGet(journal: Journal, id: string): Promise<FlowInfo> {
  const info = await journal.get(id);
  if (!info) throw new CroreError('NOT_FOUND', `there is no flow '${id}' in this store`);
  return info;
}

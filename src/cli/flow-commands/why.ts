import { existsSync } from 'node:fs';
import { CroreError } from '../../errors.js';
import { readSource } from '../../flow/input/source.js';
import { Cache } from '../../flow/journal/cache.js';
import { NoJournal } from '../../flow/journal/journal.js';
import { openJournal } from '../../flow/journal/open.js';
import { localState } from '../../flow/run/local-state.js';
import { findNode } from '../../flow/run/start.js';
import { givenStore } from '../action.js';
import { parse, program, storeOptions } from '../program.js';

/** Default file names of a flow. */
const USUAL = [
  'crore.yaml',
  'flow.yaml',
  'pipeline.yaml',
  'crore.yml',
  'flow.yml',
  'pipeline.yml',
  'flow.json',
  'flow.ts',
  'flow.js',
  'flow.mjs',
];

export async function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore why',
    summary: 'Explain why a node would run or not.',
    examples: [['crore why train pipeline.yaml', 'its command or an input has changed, a node it needs would run …']],
  });
  storeOptions(command)
    .argument('<node>')
    .argument('[file]', `flow file (default: the first of ${USUAL.slice(0, 3).join(', ')} …)`)
    .action(why);
  await parse(command, argv);
  return 0;
}

async function why(id: string, given: string | undefined, options: { store?: string; json?: boolean }): Promise<void> {
  const file = given ?? USUAL.find((name) => existsSync(name));
  if (file === undefined)
    throw new CroreError('BAD_OPTION', `no flow given, and this directory has none of ${USUAL.join(', ')}`);
  const graph = await readSource({ file });
  const node = findNode(graph, id);
  const store = givenStore(options);
  const memories = store ?? localState(file).memories;
  // A query must not create the file.
  const missing = memories.startsWith('sqlite:') && !existsSync(memories.slice('sqlite:'.length));
  const journal = missing ? new NoJournal() : await openJournal(memories);
  try {
    const cache = await Cache.open(graph, journal, process.cwd());
    const { runs, why: reasons } = cache.why(node);
    if (options.json) process.stdout.write(`${JSON.stringify({ id, runs, why: reasons })}\n`);
    else process.stdout.write(`${id} ${runs ? 'would run' : 'would not run'}: ${reasons.join('; ')}\n`);
  } finally {
    await journal.close();
  }
}

import { checkName } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import type { Counts, Crore, Queue } from '../../index.js';
import { STATES } from '../../job/job.js';
import { action, answer, type StoreOptions, subcommand, withStore } from '../action.js';
import { printable } from '../output.js';
import { program } from '../program.js';
import { Progress } from '../progress.js';
import { colourOf } from './job-view.js';
import { addLimits } from './queue-limits.js';
import { addBreaker } from './subcommands/queue-breaker.js';

interface Row {
  queue: string;
  counts: Counts;
  workers: number;
  paused: boolean;
  breakerOpen: boolean;
}

/** How many queues to query at the same time. */
const TOGETHER = 50;
/** Clearing this many entries takes about a second. */
const MANY = 500_000;

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore queue',
    summary: 'Count, pause, resume and clear queues; show and set their limits and breakers.',
    examples: [
      ['crore queue ls', 'all queues, with the number of jobs in each state'],
      ['crore queue pause mails', 'start no more jobs of this queue'],
    ],
  });
  const ls = subcommand(command, 'ls [queue...]', {
    summary: 'Count the jobs of queues by state (raw tasks count as ready or active), and their workers.',
    examples: [
      ['crore queue ls', 'all queues'],
      ['crore queue ls mails feeds', 'these'],
      ['crore queue ls --json | jq "select(.dead > 0)"', 'those with dead jobs'],
    ],
  });
  action(ls, list);
  const pause = subcommand(command, 'pause <queue...>', {
    summary: 'Pause queues on all workers: no more jobs start, running jobs continue.',
    examples: [['crore queue pause mails', "until 'crore queue resume mails'"]],
  });
  action(pause, (queues: string[], options: StoreOptions) => setPaused(queues, options, true));
  const resume = subcommand(command, 'resume <queue...>', {
    summary: 'Resume paused queues, and those that their breaker has stopped.',
    examples: [['crore queue resume mails', 'start jobs again']],
  });
  action(resume, (queues: string[], options: StoreOptions) => setPaused(queues, options, false));
  const clear = subcommand(command, 'clear <queue>', {
    summary: 'Remove everything in a queue, including running jobs. This cannot be undone.',
    examples: [
      ['crore queue clear mails', 'prints what would be removed, and removes nothing'],
      ['crore queue clear mails --yes', 'removes everything'],
    ],
  }).option('--yes', 'Confirm.');
  action(clear, clearQueue);
  addLimits(command);
  addBreaker(command);
  return answer(command, argv);
}

async function list(names: string[], options: StoreOptions): Promise<number> {
  for (const name of names) checkName(name, 'queue name');
  return withStore(options, async ({ crore, out }) => {
    const known = await crore.queues();
    const unknown = names.find((name) => !known.includes(name));
    if (unknown !== undefined) throw new CroreError('NOT_FOUND', `no queue '${printable(unknown)}'`);
    const asked = names.length > 0 ? names : known;
    const show = out.table<Row>(
      [
        { title: 'queue', of: (row) => printable(row.queue), keep: true },
        ...STATES.map((state) => ({
          title: state,
          of: (row: Row) => row.counts[state],
          colour: (row: Row) => (row.counts[state] > 0 ? colourOf(state) : 'dim'),
        })),
        { title: 'workers', of: (row) => row.workers },
        { title: '', of: (row) => notesOf(row).join(', '), colour: () => 'yellow' },
      ],
      ({ queue, counts, workers, paused, breakerOpen }) => ({ queue, ...counts, workers, paused, breakerOpen }),
    );
    for (let i = 0; i < asked.length && !out.closed; i += TOGETHER) {
      show(await Promise.all(asked.slice(i, i + TOGETHER).map((name) => look(crore, name))));
    }
    return 0;
  });
}

function notesOf({ paused, breakerOpen, counts }: Row): string[] {
  const { droppedDead = 0 } = counts;
  const stopped = [...(paused ? ['paused'] : []), ...(breakerOpen ? ['breaker open'] : [])];
  return [...stopped, ...(droppedDead > 0 ? [`${droppedDead} dead jobs dropped`] : [])];
}

async function look(crore: Crore, name: string): Promise<Row> {
  const queue = crore.queue(name);
  const [counts, workers, paused, breaker] = await Promise.all([
    queue.count(),
    queue.workers(),
    queue.isPaused(),
    queue.breaker(),
  ]);
  return { queue: name, counts, workers: workers.length, paused, breakerOpen: breaker?.isOpen ?? false };
}

async function setPaused(names: string[], options: StoreOptions, paused: boolean): Promise<number> {
  for (const name of names) checkName(name, 'queue name');
  return withStore(options, async ({ crore, out }) => {
    for (const name of names) {
      const queue = crore.queue(name);
      await (paused ? queue.pause() : queue.resume());
      const outcome = paused ? 'paused' : 'resumed';
      out.say({ queue: name, outcome }, `${printable(name)}  ${outcome}`);
    }
    return 0;
  });
}

async function clearQueue(name: string, options: StoreOptions & { yes?: boolean }): Promise<number> {
  checkName(name, 'queue name');
  return withStore(options, async ({ crore, out }) => {
    const queue = crore.queue(name);
    if (!(await crore.queues()).includes(name)) throw new CroreError('NOT_FOUND', `no queue '${printable(name)}'`);
    const counts = await queue.count();
    const total = STATES.reduce((sum, state) => sum + counts[state], 0);
    if (!options.yes) {
      const what = `${total} entries (${counts.active} of them running)`;
      throw new CroreError('BAD_OPTION', `queue clear removes ${what} of '${printable(name)}': add --yes to confirm`);
    }
    await obliterate(queue, total);
    out.say({ queue: name, outcome: 'cleared', entries: total }, `${printable(name)}  cleared, ${total} entries`);
    return 0;
  });
}

/** Stores clear a queue as a whole, so there is nothing to count on the way. */
async function obliterate(queue: Queue, total: number): Promise<void> {
  const progress = new Progress();
  if (total >= MANY) progress.show(`removing ${total.toLocaleString('en-US')} entries`);
  try {
    await queue.obliterate();
  } finally {
    progress.end();
  }
}

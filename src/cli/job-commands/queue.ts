import { checkName } from '../../engine/check.js';
import { CroreError } from '../../errors.js';
import type { Counts, Crore } from '../../index.js';
import { STATES } from '../../job/job.js';
import { action, answer, type StoreOptions, subcommand, withStore } from '../action.js';
import { printable } from '../output.js';
import { program } from '../program.js';
import { colourOf } from './job-view.js';
import { addLimits } from './queue-limits.js';

interface Row {
  queue: string;
  counts: Counts;
  workers: number;
  paused: boolean;
}

/** How many queues to query at the same time. */
const TOGETHER = 50;

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore queue',
    summary: 'Look at queues, pause, resume and clear them, say how fast they may go.',
    examples: [
      ['crore queue ls', 'every queue, and how many jobs it has in each state'],
      ['crore queue pause mails', 'hand out no more work'],
    ],
  });
  const ls = subcommand(command, 'ls [queue...]', {
    summary: 'Count the jobs of queues by state (raw tasks count as ready or active), and their workers.',
    examples: [
      ['crore queue ls', 'every queue'],
      ['crore queue ls mails feeds', 'these'],
      ['crore queue ls --json | jq "select(.dead > 0)"', 'those with dead jobs'],
    ],
  });
  action(ls, list);
  const pause = subcommand(command, 'pause <queue...>', {
    summary: 'Hand out no more work of these queues, on any worker; what runs goes on.',
    examples: [['crore queue pause mails', "until 'crore queue resume mails'"]],
  });
  action(pause, (queues: string[], options: StoreOptions) => setPaused(queues, options, true));
  const resume = subcommand(command, 'resume <queue...>', {
    summary: 'Hand out work again.',
    examples: [['crore queue resume mails', 'go on']],
  });
  action(resume, (queues: string[], options: StoreOptions) => setPaused(queues, options, false));
  const clear = subcommand(command, 'clear <queue>', {
    summary: 'Forget everything in a queue, also what is running. There is no way back.',
    examples: [
      ['crore queue clear mails', 'says what would be lost, and does nothing'],
      ['crore queue clear mails --yes', 'does it'],
    ],
  }).option('--yes', 'Yes, I mean it.');
  action(clear, clearQueue);
  addLimits(command);
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
        { title: 'queue', of: (row) => printable(row.queue) },
        ...STATES.map((state) => ({
          title: state,
          of: (row: Row) => row.counts[state],
          colour: (row: Row) => (row.counts[state] > 0 ? colourOf(state) : 'dim'),
        })),
        { title: 'workers', of: (row) => row.workers },
        { title: '', of: (row) => (row.paused ? 'paused' : ''), colour: () => 'yellow' },
      ],
      ({ queue, counts, workers, paused }) => ({ queue, ...counts, workers, paused }),
    );
    for (let i = 0; i < asked.length && !out.closed; i += TOGETHER) {
      show(await Promise.all(asked.slice(i, i + TOGETHER).map((name) => look(crore, name))));
    }
    return 0;
  });
}

async function look(crore: Crore, name: string): Promise<Row> {
  const queue = crore.queue(name);
  const [counts, workers, paused] = await Promise.all([queue.count(), queue.workers(), queue.isPaused()]);
  return { queue: name, counts, workers: workers.length, paused };
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
      throw new CroreError('BAD_OPTION', `queue clear forgets ${what} of '${printable(name)}' for ever: add --yes`);
    }
    await queue.obliterate();
    out.say({ queue: name, outcome: 'cleared', entries: total }, `${printable(name)}  cleared, ${total} entries`);
    return 0;
  });
}

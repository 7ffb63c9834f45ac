import type { Command } from 'commander';
import { checkName } from '../../engine/input/check.js';
import type { Crore, WorkerInfo } from '../../index.js';
import { action, answer, type StoreOptions, subcommand, withStore } from '../action.js';
import { isoTime, printable } from '../output.js';
import { program } from '../program.js';
import { joining } from './worker-join.js';

interface Row extends Omit<WorkerInfo, 'info'> {
  queue: string;
  /** Reported by the worker itself, if it does. */
  host?: string;
  pid?: number;
  concurrency?: number;
  since?: number;
}

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore worker',
    summary: 'Join running flows as a worker, from any machine that can reach the store; or list workers.',
    examples: [
      ['crore worker --store redis://db -j 8', 'join all flows of this store, eight nodes at once'],
      ['crore worker --store redis://db --flow build-1a2b3c4d', 'join one flow, and exit when it ends'],
      ['crore worker ls', 'list live workers'],
    ],
  });
  // Options after `ls` belong to `ls`, though both know --store.
  command.enablePositionalOptions();
  joining(command);
  listing(command);
  return answer(command, argv);
}

function listing(parent: Command): void {
  const command = subcommand(parent, 'ls [queue...]', {
    summary: 'List live workers, how many jobs they hold, and until when they count as alive.',
    examples: [
      ['crore worker ls', 'of all queues'],
      ['crore worker ls mails', 'of one queue'],
      ['crore worker ls --json | jq -r .host | sort | uniq -c', 'workers by machine'],
    ],
  });
  action(command, list);
}

async function list(names: string[], options: StoreOptions): Promise<number> {
  for (const name of names) checkName(name, 'queue name');
  return withStore(options, async ({ crore, out }) => {
    const show = out.table<Row>(
      [
        { title: 'worker', of: (row) => printable(row.id) },
        { title: 'queue', of: (row) => printable(row.queue) },
        { title: 'holds', of: (row) => row.holds },
        { title: 'slots', of: (row) => row.concurrency ?? '' },
        { title: 'host', of: (row) => printable(row.host ?? '') },
        { title: 'pid', of: (row) => row.pid ?? '' },
        { title: 'since', of: (row) => (row.since === undefined ? '' : isoTime(row.since)) },
        { title: 'deadline', of: (row) => isoTime(row.deadline) },
      ],
      ({ deadline, since, ...row }) => ({
        ...row,
        since: since === undefined ? undefined : isoTime(since),
        deadline: isoTime(deadline),
      }),
    );
    const rows: Row[] = [];
    for (const name of names.length > 0 ? names : await crore.queues()) rows.push(...(await workersOf(crore, name)));
    show(rows);
    return 0;
  });
}

async function workersOf(crore: Crore, queue: string): Promise<Row[]> {
  const workers = await crore.queue(queue).workers();
  return workers.map(({ info, ...worker }) => ({ queue, ...worker, ...described(info) }));
}

/** Information a worker wrote about itself may be anything; unexpected fields are left out. */
function described(info: string): Partial<Row> {
  try {
    const { host, pid, concurrency, since } = JSON.parse(info) as Record<string, unknown>;
    return {
      ...(typeof host === 'string' && { host }),
      ...(typeof pid === 'number' && { pid }),
      ...(typeof concurrency === 'number' && { concurrency }),
      ...(typeof since === 'number' && Number.isFinite(new Date(since).getTime()) && { since }),
    };
  } catch {
    return {};
  }
}

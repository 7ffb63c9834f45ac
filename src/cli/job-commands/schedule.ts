import type { Command } from 'commander';
import { checkName, checkOneOf } from '../../engine/input/check.js';
import { resolveWhen } from '../../engine/schedules/schedule-ticks.js';
import { CroreError } from '../../errors.js';
import type { CatchUp, ScheduleView } from '../../index.js';
import { action, answer, type StoreOptions, subcommand, withStore } from '../action.js';
import { notBoth } from '../option-values.js';
import { isoTime, printable } from '../output.js';
import { program } from '../program.js';
import { complain } from './job-actions.js';
import { argumentBytes, given, type JobLine, jobLine, readPayload, readText, resolveJobLine } from './job-options.js';

interface AddLine extends StoreOptions, JobLine {
  cron?: string;
  every?: string;
  timezone?: string;
  catchUp?: string;
}

const CATCH_UP: readonly CatchUp[] = ['skip', 'last', 'all'];

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore schedule',
    summary: 'Manage recurring jobs. Schedules are kept in the store and fired by any running worker, each tick once.',
    examples: [
      [`crore schedule add nightly reports --cron '0 4 * * *'`, 'a job in the queue reports, every night'],
      ['crore schedule ls', 'list schedules with their next tick'],
    ],
  });
  action(listing(command), list);
  action(adding(command), add);
  const rm = subcommand(command, 'rm <name...>', {
    summary: 'Remove schedules, but not their jobs.',
    examples: [['crore schedule rm nightly', 'remove this schedule']],
  });
  action(rm, remove);
  const now = subcommand(command, 'run <name>', {
    summary: 'Add a job of a schedule now, in addition to its ticks, and print its id.',
    examples: [['crore schedule run nightly', 'without waiting for the next tick']],
  });
  action(now, fire);
  return answer(command, argv);
}

function listing(parent: Command): Command {
  return subcommand(parent, 'ls', {
    summary: 'List schedules, with their last and next tick.',
    examples: [
      ['crore schedule ls', 'as text'],
      ['crore schedule ls --json | jq -r .next', 'as JSON'],
    ],
  });
}

function adding(parent: Command): Command {
  const command = subcommand(parent, 'add <name> <queue> [payload]', {
    summary: 'Add a schedule, or replace the one with this name. A payload that parses as JSON is that value.',
    examples: [
      [`crore schedule add nightly reports --cron '0 4 * * *' --timezone Europe/Berlin`, 'at four in the morning'],
      [`crore schedule add poll feeds '{"feed":"acme"}' --every 10m`, 'every ten minutes'],
      ['crore schedule add poll feeds acme --every 10m --catch-up skip', 'skip missed ticks'],
    ],
  });
  return jobLine(command)
    .option('--cron <expression>', 'Cron expression: five fields, six with seconds, or a name such as @daily.')
    .option('--every <time>', "Interval, such as '10m'.")
    .option('--timezone <name>', 'Time zone of the cron expression, such as Europe/Berlin (default: UTC).')
    .option('--catch-up <how>', 'Missed ticks: skip them, add a job for the last, or for all (default: last).');
}

async function list(options: StoreOptions): Promise<number> {
  return withStore(options, async ({ crore, out }) => {
    const show = out.table<ScheduleView>(
      [
        { title: 'schedule', of: ({ name }) => printable(name), keep: true },
        { title: 'queue', of: ({ queue }) => printable(queue) },
        { title: 'when', of: rhythm },
        { title: 'next', of: ({ next }) => moment(next) },
        { title: 'last', of: ({ last }) => moment(last) },
      ],
      (schedule) => schedule,
    );
    show(await crore.schedules());
    return 0;
  });
}

function rhythm({ cron, timezone, every }: ScheduleView): string {
  return cron === undefined ? `every ${spoken(every!)}` : printable(`${cron} ${timezone}`);
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** Formats a duration the way a user would enter it. */
function spoken(ms: number): string {
  const [unit, size] = UNITS.find(([, each]) => ms % each === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}

function moment(date: Date | undefined): string {
  return date === undefined ? '-' : isoTime(date.getTime());
}

async function add(name: string, queue: string, payload: string | undefined, options: AddLine): Promise<number> {
  checkName(name, 'schedule name');
  checkName(queue, 'queue name');
  notBoth(options, 'cron', 'every');
  const { cron, every, timezone } = options;
  if (cron === undefined && every === undefined) {
    throw new CroreError('BAD_OPTION', "schedule add: no time given: use --cron '0 4 * * *' or --every 10m");
  }
  const when = cron === undefined ? { every: every! } : { cron };
  resolveWhen(when, timezone); // refuses invalid values before anything is opened
  const jobOptions = resolveJobLine(options);
  const read = options.text ? readText : readPayload;
  const value = payload === undefined ? null : read(argumentBytes(payload), 'the payload');
  const job = { queue, payload: value, ...jobOptions };
  const catchUp = options.catchUp === undefined ? undefined : checkOneOf(options.catchUp, '--catch-up', CATCH_UP);
  const asked = given({ timezone, catchUp });
  return withStore(
    options,
    async ({ crore, out }) => {
      const schedule = await crore.schedule(name, when, job, asked);
      out.say(schedule, `${printable(name)}  next ${moment(schedule.next)}`);
      return 0;
    },
    { create: true },
  );
}

async function remove(names: string[], options: StoreOptions): Promise<number> {
  for (const name of names) checkName(name, 'schedule name');
  return withStore(options, async ({ crore, out }) => {
    let code = 0;
    for (const name of names) {
      const removed = await crore.unschedule(name);
      if (removed || out.json) {
        out.say({ name, outcome: removed ? 'removed' : 'missing' }, `${printable(name)}  removed`);
      }
      if (removed) continue;
      code = 1;
      complain(`there is no schedule '${printable(name)}'`);
    }
    return code;
  });
}

async function fire(name: string, options: StoreOptions): Promise<number> {
  checkName(name, 'schedule name');
  return withStore(options, async ({ crore, out }) => {
    const { queue, id, outcome } = await crore.runSchedule(name);
    out.say(
      { name, queue, id, outcome },
      outcome === 'created' ? printable(id, 512) : `${printable(id, 512)}  ${outcome}`,
    );
    return 0;
  });
}

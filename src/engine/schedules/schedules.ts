import { CroreError } from '../../errors.js';
import type { Body, NewJob } from '../../job/job.js';
import type { Schedule } from '../../store/store.js';
import { checkName, checkOneOf, checkOptions } from '../input/check.js';
import { type AddOptions, resolveJob } from '../input/options.js';
import { checkRule, type Rule, resolveWhen, Ticks, type When } from './schedule-ticks.js';

/** How to handle ticks missed while no process was running: no job, one job for the last of them, or a job for each. */
export type CatchUp = 'skip' | 'last' | 'all';

export interface ScheduleOptions {
  /** IANA time zone for cron expressions, such as Europe/Berlin; default UTC. */
  timezone?: string;
  /** How to handle missed ticks; default `last`. */
  catchUp?: CatchUp;
}

/** Options of the jobs a schedule creates. The tick determines their id and time. */
export type ScheduledJobOptions = Omit<
  AddOptions,
  'id' | 'delay' | 'at' | 'needs' | 'batch' | 'batchPolicy' | 'parent'
>;

/** A schedule's definition as it is stored; equal definitions have equal texts. */
interface Definition {
  rule: Rule;
  catchUp: CatchUp;
  /** JSON text, or base64-encoded bytes. */
  payload: { json: string } | { bytes: string };
  options: ScheduledJobOptions;
}

const JOB_OPTIONS = [
  'priority',
  'attempts',
  'retryFor',
  'backoff',
  'reservation',
  'unique',
  'group',
  'expires',
  'keep',
  'keepDead',
  'headers',
] as const;

/** A tick processed later than this counts as missed, in milliseconds. */
const ON_TIME = 10_000;
/** Maximum number of jobs one firing creates. */
const MOST_AT_ONCE = 500;
/** Maximum number of missed ticks to catch up on; earlier ones are skipped. */
const MOST_MISSED = 1_000;
/** The earliest start of a schedule built by a client, in milliseconds before now: clocks differ. */
const LONGEST_AGO = 86_400_000;

export interface NewDefinition {
  text: string;
  first: number | undefined;
}

/** Validates the whole definition before anything is stored. */
export function defineSchedule(
  name: string,
  queue: string,
  when: When,
  payload: Body,
  jobOptions: ScheduledJobOptions,
  options: ScheduleOptions,
  now: number,
): NewDefinition {
  checkOptions(options, ['timezone', 'catchUp'], 'schedule');
  checkOptions(jobOptions, JOB_OPTIONS, 'schedule: job');
  const rule = resolveWhen(when, options.timezone);
  const catchUp = checkOneOf(options.catchUp ?? 'last', 'schedule: catchUp', ['skip', 'last', 'all']);
  if (jobOptions.expires instanceof Date)
    throw new CroreError('BAD_OPTION', 'schedule: job: expires must be a duration, not a Date');
  const stored = typeof payload === 'string' ? { json: payload } : { bytes: Buffer.from(payload).toString('base64') };
  const definition: Definition = { rule, catchUp, payload: stored, options: jobOptions };
  const text = JSON.stringify(definition);
  const first = new Ticks(rule, now).after(now);
  // Builds a sample job of the first tick to validate it: its id and headers are longer than the ones given.
  if (first !== undefined) firing({ name, queue, definition: text, since: now, next: first }, first);
  return { text, first };
}

/** A schedule as returned to users. */
export interface ScheduleView {
  name: string;
  queue: string;
  cron?: string;
  timezone?: string;
  /** Milliseconds. */
  every?: number;
  catchUp: CatchUp;
  /** The next tick; absent when there are no more. */
  next?: Date;
  /** The tick of the last job. */
  last?: Date;
}

export function scheduleView({ name, queue, definition, next, last }: Schedule): ScheduleView {
  const { rule, catchUp } = JSON.parse(definition) as Definition;
  return {
    name,
    queue,
    ...rule,
    catchUp,
    ...(next === undefined ? {} : { next: new Date(next) }),
    ...(last === undefined ? {} : { last: new Date(last) }),
  };
}

/** The next ticks, as they will be if nothing changes. */
export function nextTicks({ definition, since, next }: Schedule, count: number): number[] {
  if (next === undefined) return [];
  const { rule } = JSON.parse(definition) as Definition;
  return new Ticks(rule, since).between(next, Number.POSITIVE_INFINITY, count);
}

/** The payload of the jobs of a schedule. */
export function scheduledPayload({ definition }: Schedule): Body {
  const { payload } = JSON.parse(definition) as Definition;
  return 'json' in payload ? payload.json : Buffer.from(payload.bytes, 'base64');
}

export interface Firing {
  jobs: NewJob[];
  next: number | undefined;
  last: number | undefined;
}

/** Decides what a due schedule does now. A pure function, so that every process decides the same. */
export function firing(schedule: Schedule, now: number): Firing {
  const { rule, catchUp } = JSON.parse(schedule.definition) as Definition;
  const ticks = new Ticks(rule, schedule.since);
  const due = schedule.next!;
  const latest = Math.max(due, ticks.upTo(now) ?? due);
  const chosen = catchUp === 'all' ? missed(ticks, due, latest) : [latest];
  const last = chosen.at(-1)!;
  const fires = catchUp === 'skip' && now - last > ON_TIME ? [] : chosen;
  return {
    jobs: fires.map((tick) => jobOf(schedule, now, `${schedule.name}@${new Date(tick).toISOString()}`, tick)),
    next: ticks.after(last),
    last: fires.length > 0 ? last : schedule.last,
  };
}

function missed(ticks: Ticks, due: number, latest: number): number[] {
  const first = ticks.between(due, latest, MOST_AT_ONCE);
  if (first.length < MOST_AT_ONCE || first.at(-1)! >= latest) return first;
  const oldest = ticks.back(latest, MOST_MISSED);
  return oldest <= due ? first : ticks.between(oldest, latest, MOST_AT_ONCE);
}

/** Validates a schedule built by a client, because every process will read it. */
export function checkSchedule(schedule: Schedule, now: number): Schedule {
  const { name, definition, since, next } = schedule;
  checkScheduleName(name);
  checkName(schedule.queue, 'queue name');
  let parsed: Definition;
  try {
    parsed = JSON.parse(definition) as Definition;
  } catch {
    throw new CroreError('BAD_OPTION', `schedule '${name}' has a definition that is not JSON`);
  }
  if (parsed === null || typeof parsed !== 'object' || parsed.rule === null || typeof parsed.rule !== 'object')
    throw new CroreError('BAD_OPTION', `schedule '${name}' has an unreadable definition: it has no rule`);
  checkRule(parsed.rule);
  checkOneOf(parsed.catchUp, 'schedule: catchUp', ['skip', 'last', 'all']);
  checkOptions(parsed.options, JOB_OPTIONS, 'schedule: job');
  for (const [what, time] of Object.entries({ since, next: next ?? now })) {
    if (!(time >= now - LONGEST_AGO))
      throw new CroreError('BAD_OPTION', `schedule '${name}': ${what} is more than a day in the past`);
  }
  extraJob(schedule, since);
  return schedule;
}

/** Builds a job of a schedule outside its ticks. */
export function extraJob(schedule: Schedule, now: number): NewJob {
  return jobOf(schedule, now, undefined, now);
}

function jobOf(schedule: Schedule, now: number, id: string | undefined, tick: number): NewJob {
  const { options } = JSON.parse(schedule.definition) as Definition;
  const body = scheduledPayload(schedule);
  const headers = { ...options.headers, 'crore-schedule': schedule.name, 'crore-tick': new Date(tick).toISOString() };
  return resolveJob(schedule.queue, body, { ...options, id, headers }, now);
}

export function checkScheduleName(name: unknown): string {
  return checkName(name, 'schedule name');
}

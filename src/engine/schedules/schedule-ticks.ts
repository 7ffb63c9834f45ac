import { Cron } from 'croner';
import { CroreError } from '../../errors.js';
import { type Duration, milliseconds } from '../../job/duration.js';
import { checkOptions, describe } from '../input/check.js';

/** When a schedule fires: a cron expression (five fields, six with seconds, or `@daily` and similar), or a fixed interval. */
export type When = string | number | { cron: string } | { every: Duration };

export type Rule = { cron: string; timezone: string } | { every: number };

const SHORTEST = 100;
const LONGEST = 366 * 86_400_000;

/** A text with spaces or an @ is a cron expression, any other text a duration. */
export function resolveWhen(when: When, timezone: string | undefined): Rule {
  if (typeof when === 'object' && when !== null) {
    checkOptions(when, ['cron', 'every'], 'schedule: when');
    if ('cron' in when && 'every' in when)
      throw new CroreError('BAD_OPTION', "schedule: give 'cron' or 'every', not both");
  }
  const cron = typeof when === 'string' && /[\s@]/.test(when) ? when : (when as { cron?: string } | undefined)?.cron;
  if (cron !== undefined) return checkCron(cron, timezone ?? 'UTC');
  const every = milliseconds(typeof when === 'object' ? (when as { every: Duration })?.every : when, 'schedule: every');
  checkEvery(every);
  if (timezone !== undefined)
    throw new CroreError('BAD_OPTION', "schedule: 'timezone' requires a cron expression, not 'every'");
  return { every };
}

function checkEvery(every: number): void {
  if (every < SHORTEST)
    throw new CroreError('BAD_OPTION', `schedule: every must be at least ${SHORTEST} ms, not ${every}`);
  if (every > LONGEST) throw new CroreError('BAD_OPTION', `schedule: every must be at most a year, not ${every} ms`);
}

/** Checks a stored rule, which another process may have written and so may be anything. */
export function checkRule(rule: unknown): Rule {
  const { cron, timezone, every } = (rule ?? {}) as { cron?: string; timezone?: string; every?: number };
  return resolveWhen(cron === undefined ? { every: every! } : { cron }, timezone);
}

function checkCron(cron: unknown, timezone: unknown): Rule {
  if (typeof cron !== 'string')
    throw new CroreError('BAD_OPTION', `schedule: cron must be a string, not ${describe(cron)}`);
  if (typeof timezone !== 'string')
    throw new CroreError('BAD_OPTION', `schedule: timezone must be a string, not ${describe(timezone)}`);
  try {
    new Intl.DateTimeFormat('en', { timeZone: timezone });
  } catch {
    throw new CroreError('BAD_OPTION', `schedule: unknown timezone '${timezone}'`);
  }
  // The library would also accept a date as an expression.
  if (!/^(@\w+|\S+(\s+\S+){4,6})$/.test(cron.trim()))
    throw new CroreError('BAD_OPTION', `schedule: '${cron}' is not a cron expression: it must have five or six fields`);
  let next: Date | null;
  try {
    next = new Cron(cron, { timezone, paused: true }).nextRun();
  } catch (error) {
    throw new CroreError('BAD_OPTION', `schedule: '${cron}' is not a cron expression: ${(error as Error).message}`);
  }
  if (!next) throw new CroreError('BAD_OPTION', `schedule: cron expression '${cron}' never fires`);
  return { cron, timezone };
}

/** Computes the ticks of a rule. For `every`, `since` is where counting starts. */
export class Ticks {
  readonly #cron: Cron | undefined;
  readonly #every: number;

  constructor(
    rule: Rule,
    private readonly since: number,
  ) {
    this.#cron = 'cron' in rule ? new Cron(rule.cron, { timezone: rule.timezone, paused: true }) : undefined;
    this.#every = 'every' in rule ? rule.every : 0;
  }

  /** The first tick after this time; undefined when there are no more. */
  after(time: number): number | undefined {
    if (this.#cron) return this.#cron.nextRun(new Date(time))?.getTime();
    return this.since + (Math.floor((time - this.since) / this.#every) + 1) * this.#every;
  }

  /** The last tick at or before this time. */
  upTo(time: number): number | undefined {
    // The library works in whole seconds, and only looks before the time it is given.
    if (this.#cron) return this.#cron.previousRuns(1, new Date(time + 1_000))[0]?.getTime();
    return this.after(time)! - this.#every;
  }

  /** The earliest of the last `count` ticks up to and including this one. */
  back(tick: number, count: number): number {
    if (!this.#cron) return tick - (count - 1) * this.#every;
    return (
      this.#cron
        .previousRuns(count, new Date(tick + 1_000))
        .at(-1)
        ?.getTime() ?? tick
    );
  }

  /** Ticks from `first` to `last`, at most `most` of them. */
  between(first: number, last: number, most: number): number[] {
    const ticks: number[] = [];
    for (let tick: number | undefined = first; tick !== undefined && tick <= last && ticks.length < most; ) {
      ticks.push(tick);
      tick = this.after(tick);
    }
    return ticks;
  }
}

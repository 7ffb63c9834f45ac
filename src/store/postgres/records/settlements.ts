import { writeChildren } from '../../../job/children.js';
import { storedError } from '../../../job/reported-error.js';
import type { Outcome } from '../../../job/transitions.js';
import type { EventType, Settlement } from '../../store.js';
import { type Arg, numbers, textList } from '../connection/arguments.js';
import { traitsOf, writeJob } from './new-jobs.js';
import { splitToken } from './tokens.js';

/** A settlement in the form that `settle` takes: see sql/jobs/settle.sql. */
export function writeSettlement({ lease, outcome, spec, record, attempt }: Settlement): object {
  const token = splitToken(lease.token);
  return {
    n: token.n,
    token: token.own,
    claim: token.claim,
    ...(lease.id === undefined ? {} : { id: lease.id, leased: token.attempt, traits: traitsOf(spec) }),
    to: outcome.to,
    event: eventOf(outcome),
    attempt: outcome.attempt,
    crashes: outcome.crashes,
    ...details(outcome),
    line: attempt,
    record: record && writeJob(record),
  };
}

/** The arguments of `done`, if all are jobs that are done and need nothing else: see sql/jobs/done.sql. */
export function doneArguments(settlements: readonly Settlement[]): Arg[] | undefined {
  const results: (string | undefined)[] = [];
  for (const { lease, outcome, spec } of settlements) {
    if (outcome.to !== 'done' || lease.id === undefined || spec.unique || spec.batchPolicy !== undefined)
      return undefined;
    if (outcome.result !== undefined && typeof outcome.result !== 'string') return undefined;
    results.push(outcome.result);
  }
  // A lease that occurs twice is applied once.
  if (new Set(settlements.map(({ lease }) => lease.token)).size < settlements.length) return undefined;
  const tokens = settlements.map(({ lease }) => splitToken(lease.token));
  return [
    numbers(tokens.map(({ n }) => n)),
    textList(tokens.map(({ own }) => own)),
    numbers(tokens.map(({ attempt }) => attempt)),
    textList(settlements.map(({ lease }) => lease.id)),
    textList(results),
    settlements.some(({ attempt }) => attempt !== undefined)
      ? textList(settlements.map(({ attempt }) => attempt))
      : null,
    settlements.some(({ spec: { keep } }) => keep.done.ms <= 0 || keep.done.count <= 0),
  ];
}

/** The arguments of `done_tasks`, if all are raw tasks that are done. */
export function doneTaskArguments(settlements: readonly Settlement[]): Arg[] | undefined {
  const isDone = ({ lease, outcome, record }: Settlement) =>
    outcome.to === 'done' && lease.id === undefined && record === undefined;
  if (!settlements.every(isDone)) return undefined;
  const tokens = settlements.map(({ lease }) => splitToken(lease.token));
  if (new Set(tokens.map(({ n }) => n)).size < tokens.length) return undefined;
  return [numbers(tokens.map(({ n }) => n)), textList(tokens.map(({ own }) => own))];
}

function details(outcome: Outcome): object {
  switch (outcome.to) {
    case 'done':
      return resultOf(outcome.result);
    case 'scheduled':
      return { delay: outcome.delay, error: outcome.error, stored: storedError(outcome.error, outcome.answered) };
    case 'blocked':
      return { children: writeChildren(outcome.list), needs: outcome.list.children };
    default:
      return { error: outcome.error };
  }
}

function resultOf(result: string | Uint8Array | undefined): object {
  if (result === undefined || typeof result === 'string') return { result };
  return { result_bytes: Buffer.from(result.buffer, result.byteOffset, result.byteLength).toString('base64') };
}

/** An entry that returns with an error was lost or has failed; without one it was snoozed or released. */
function eventOf(outcome: Outcome): EventType {
  if (outcome.to === 'blocked') return 'parked';
  if (outcome.to === 'scheduled') return outcome.error === undefined ? 'snoozed' : 'retry';
  if (outcome.to === 'ready') return outcome.error === undefined ? 'released' : 'lost';
  return outcome.to;
}

import { type Attempt, type ManualAction, readActions } from '../../../job/attempt.js';
import type { Job } from '../../../job/job.js';
import { attemptsOf } from '../../../queue/handle.js';
import type { StoryEvent } from '../../api.js';
import { isNote, noteEvents, withFewNotes } from './notes.js';

/** Everything that is known to have happened to a job, oldest first. */
export function storyOf(job: Job): StoryEvent[] {
  const attempts = attemptsOf(job);
  const [now, last] = present(job);
  // At the same time, a retry comes before the attempt that it led to, and an attempt before what it wrote.
  const runs = [...attempts.map(attemptEvent), ...now];
  const happened = [...readActions(job.attempts ?? '').map(actionEvent), ...runs, ...noteEvents(job)];
  happened.sort((a, b) => a.at - b.at);
  return [
    { kind: 'added', text: 'Added', at: job.createdAt },
    ...earlierAttempts(job, attempts),
    ...withWaits(job, [...withFewNotes(happened), ...last]),
  ];
}

/** The history is bounded: the first attempts of a job that failed often are gone. */
function earlierAttempts(job: Job, attempts: readonly Attempt[]): StoryEvent[] {
  const [first] = attempts;
  if (!first || first.attempt <= 1) return [];
  const text = `Attempts before number ${first.attempt} are no longer kept`;
  return [{ kind: 'action', text, at: job.createdAt, tone: 'warn' }];
}

const OUTCOMES = { done: 'succeeded', failed: 'failed', crashed: 'ended with its worker' } as const;
const TONES = { done: 'good', failed: 'bad', crashed: 'bad' } as const;

function attemptEvent(attempt: Attempt): StoryEvent {
  const { startedAt, endedAt, outcome } = attempt;
  const text = `Attempt ${attempt.attempt} ${OUTCOMES[outcome]}`;
  return { kind: 'attempt', text, at: startedAt ?? endedAt, until: endedAt, attempt, tone: TONES[outcome] };
}

function actionEvent(action: ManualAction): StoryEvent {
  return { kind: 'action', text: actionText(action), at: action.at, tone: 'warn' };
}

function actionText({ action, by, detail = '' }: ManualAction): string {
  if (action === 'moved') return `Moved from queue “${detail}” by ${by}`;
  if (action === 'changed') return `Changed by ${by}: ${detail}`;
  return `${action === 'retried' ? 'Retried' : 'Cancelled'} by ${by}`;
}

/** What it does now, and what comes last: how it ended, or what is next. */
function present(job: Job): [now: StoryEvent[], last: StoryEvent[]] {
  if (job.state !== 'active') return [[], lastOf(job)];
  const { attempt, startedAt, createdAt } = job;
  return [[{ kind: 'running', text: `Attempt ${attempt} is running`, at: startedAt ?? createdAt }], []];
}

function lastOf(job: Job): StoryEvent[] {
  const { state, finishedAt, runAt, error } = job;
  if (state === 'scheduled') return [{ kind: 'next', text: 'Due', at: runAt ?? job.createdAt }];
  if (finishedAt === undefined) return [];
  if (state === 'dead') return [{ kind: 'ended', text: `Dead: ${error ?? ''}`, at: finishedAt, tone: 'bad' }];
  if (state === 'cancelled') return [{ kind: 'ended', text: cancelled(error), at: finishedAt, tone: 'warn' }];
  return [{ kind: 'ended', text: 'Done', at: finishedAt, tone: 'good' }];
}

function cancelled(error: string | undefined): string {
  return error === undefined || error === 'cancelled' ? 'Cancelled' : `Cancelled: ${error}`;
}

function waitText({ state, batch, children }: Job): string {
  if (state === 'ready') return 'Waits';
  if (children?.children.length) return 'Waits for its children';
  return batch ? 'Waits for its batch' : 'Waits for other jobs';
}

/** Between the end of one thing and the beginning of the next, the job waited. */
function withWaits(job: Job, events: readonly StoryEvent[]): StoryEvent[] {
  let since = job.createdAt;
  const all: StoryEvent[] = [];
  for (const event of events) {
    const waits = (event.kind === 'attempt' || event.kind === 'running') && event.at > since;
    if (waits) all.push({ kind: 'waited', text: 'Waited', at: since, until: event.at });
    all.push(event);
    if (!isNote(event)) since = Math.max(since, event.until ?? event.at);
  }
  if (job.state === 'ready' || job.state === 'blocked') all.push({ kind: 'waited', text: waitText(job), at: since });
  return all;
}

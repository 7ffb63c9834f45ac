import type { Job } from '../../../job/job.js';
import type { TimedLine } from '../../../job/timed-lines.js';
import type { StoryEvent } from '../../api.js';

/** As many notes in a row stand on the time line by themselves; more become one event, which has the last of them. */
const FEW = 5;
const MOST_LINES = 100;
/** Characters of a line. */
const LONGEST = 500;

/** What a job wrote while it ran, as far as the times are known: lines of its log and values of its progress. */
export function noteEvents({ log, logTimes = [], progressSteps = [] }: Job): StoryEvent[] {
  const lines = (log ?? '').split('\n');
  const logged = logTimes.flatMap((at, i) => (at > 0 ? [{ kind: 'log' as const, at, text: cut(lines[i] ?? '') }] : []));
  const steps = progressSteps.map(({ at, text }) => ({ kind: 'progress' as const, at, text: `Progress: ${text}` }));
  return [...logged, ...steps].sort((a, b) => a.at - b.at);
}

export function isNote({ kind }: StoryEvent): boolean {
  return kind === 'log' || kind === 'progress';
}

/** The same events, with many notes in a row as one. */
export function withFewNotes(events: readonly StoryEvent[]): StoryEvent[] {
  const all: StoryEvent[] = [];
  for (let i = 0; i < events.length; ) {
    let end = i;
    while (end < events.length && isNote(events[end]!)) end += 1;
    all.push(...(end - i > FEW ? [together(events.slice(i, end))] : events.slice(i, Math.max(end, i + 1))));
    i = Math.max(end, i + 1);
  }
  return all;
}

function together(notes: readonly StoryEvent[]): StoryEvent {
  const logged = notes.filter(({ kind }) => kind === 'log').length;
  const lines: TimedLine[] = notes.slice(-MOST_LINES).map(({ at, text }) => ({ at, text }));
  const texts = [numberOf(logged, 'log line'), numberOf(notes.length - logged, 'progress report')];
  const left = notes.length > MOST_LINES ? `, the last ${MOST_LINES} here` : '';
  const text = `${texts.filter((one) => one !== '').join(' and ')}${left}`;
  return { kind: 'log', text, at: notes[0]!.at, until: notes.at(-1)!.at, lines };
}

function numberOf(count: number, what: string): string {
  return count === 0 ? '' : `${count} ${what}${count === 1 ? '' : 's'}`;
}

function cut(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}

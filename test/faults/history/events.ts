import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What happened to a call: it was made, it succeeded, it was refused, or its effect is not known. */
export type Phase = 'invoke' | 'ok' | 'fail' | 'unknown' | 'note';

/** One line of a history file. `at` is the monotonic clock of the machine in milliseconds, the same for all processes. */
interface Line<Verb extends string> {
  process: string;
  /** Order within the process. */
  n: number;
  at: number;
  wall: number;
  verb: Verb;
  phase: Phase;
  /** Connects the end of a call with its beginning. */
  call: number;
}

export interface AddLine extends Line<'add'> {
  /** Of all jobs of the call when it is made, of the accepted ones when it is ok. */
  ids: string[];
  /** Told that they were there already, which is an acceptance too. */
  duplicates?: string[];
}

export interface ClaimLine extends Line<'claim'> {
  entries?: { id: string; token: string; attempt: number }[];
}

export interface SettleLine extends Line<'settle'> {
  settlements?: { id: string; token: string; to: string }[];
  applied?: boolean[];
}

/** A handler: it starts (invoke), is told to stop (note), returns (ok) or throws (fail). */
export interface RunLine extends Line<'run'> {
  id: string;
  attempt: number;
}

/** Written by the experiment itself when it kills or suspends `victim`. */
export interface DeathLine extends Line<'death'> {
  victim: string;
}

export interface SampleLine extends Line<'sample'> {
  rss: number;
  descriptors: number;
}

export type Event = AddLine | ClaimLine | SettleLine | RunLine | DeathLine | SampleLine;

/** The lines of all files of a folder. A process that was killed may have left half a last line, which never counts. */
export function readHistory(dir: string): Event[] {
  if (!existsSync(dir)) return [];
  const files = readdirSync(dir).filter((name) => name.endsWith('.jsonl'));
  return files.flatMap((name) => readEvents(join(dir, name))).sort((a, b) => a.at - b.at || a.n - b.n);
}

function readEvents(file: string): Event[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  lines.pop(); // what follows the last line break
  const events = lines.map((line) => JSON.parse(line) as Event);
  for (const [i, event] of events.entries()) {
    if (event.n !== i + 1) throw new Error(`${file}: line ${i + 1} has number ${event.n}: a line is missing`);
  }
  return events;
}

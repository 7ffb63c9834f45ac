import { existsSync, readFileSync, rmSync, truncateSync } from 'node:fs';

export type Step = 'claimed' | 'ran' | 'ended';
const STEPS: readonly (Step | undefined)[] = [undefined, 'claimed', 'ran', 'ended'];
const HEAD = 16;

/** One write of a worker: see `programs/journal.mjs`. */
export interface Written {
  worker: string;
  step: Step;
  at: number;
  numbers: Uint32Array;
}

/** Reads a journal; the last batch may be incomplete when its writer was killed. */
export function readJournal(worker: string, bytes: Buffer): Written[] {
  const all: Written[] = [];
  for (let at = 0; at + HEAD <= bytes.length; ) {
    const count = bytes.readUInt32LE(at + 4);
    const end = at + HEAD + count * 4;
    const step = STEPS[bytes.readUInt32LE(at)];
    if (end > bytes.length || !step) break;
    const numbers = Uint32Array.from({ length: count }, (_x, i) => bytes.readUInt32LE(at + HEAD + i * 4));
    all.push({ worker, step, at: bytes.readDoubleLE(at + 8), numbers });
    at = end;
  }
  return all;
}

/** Reads the journals of a round in the order of time, and empties them: `living` go on writing to theirs. */
export function takeJournals(files: ReadonlyMap<string, string>, living: ReadonlySet<string>): Written[] {
  const all: Written[] = [];
  for (const [worker, file] of files) {
    if (!existsSync(file)) continue;
    for (const one of readJournal(worker, readFileSync(file))) all.push(one);
    if (living.has(worker)) truncateSync(file);
    else rmSync(file);
  }
  return all.sort((a, b) => a.at - b.at);
}

import { CroreError } from '../../errors.js';

/** The outcome of a job, given the exit code of its executable. */
export type ExitOutcome = 'done' | 'retry' | 'dead';
const VERDICTS: readonly ExitOutcome[] = ['done', 'retry', 'dead'];

const CUSTOM: Readonly<Record<number, ExitOutcome>> = { 0: 'done', 75: 'retry', 100: 'dead' };

/** Parses `--exit-codes 3=done,4=dead`, on top of the conventions for 0, 75 and 100; every other code is a retry. */
export function exitOutcomes(texts: readonly string[]): (code: number) => ExitOutcome {
  const table: Record<number, ExitOutcome> = { ...CUSTOM };
  for (const text of texts.flatMap((each) => each.split(','))) {
    const [, code, outcome] = /^\s*(\d{1,3})\s*=\s*(\w+)\s*$/.exec(text) ?? [];
    if (code === undefined || Number(code) > 255 || !VERDICTS.includes(outcome as ExitOutcome)) {
      throw new CroreError(
        'BAD_OPTION',
        `--exit-codes '${text}' must be an exit code from 0 to 255 and an outcome, such as 3=done, 4=dead or 5=retry`,
      );
    }
    table[Number(code)] = outcome as ExitOutcome;
  }
  return (code) => table[code] ?? 'retry';
}

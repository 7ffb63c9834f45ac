import type { Attempt } from '../../index.js';
import { isoTime, type Output, printable } from '../output.js';

const COLOURS = { done: 'green', failed: 'red', crashed: 'red' } as const;
const LINES = 20;

/** The attempts of a job, oldest first: when, where and how long, the error and its stack. */
export function showAttempts(out: Output, attempts: readonly Attempt[]): void {
  for (const one of attempts) {
    const { attempt, outcome, startedAt, endedAt, worker, error } = one;
    const lasted = startedAt === undefined ? '' : ` after ${seconds(endedAt - startedAt)}`;
    const where = worker === undefined ? '' : ` on ${printable(worker)}`;
    out.write(`attempt ${attempt}  ${out.paint(outcome, COLOURS[outcome])} ${isoTime(endedAt)}${lasted}${where}`);
    if (!error) continue;
    const name = error.name === '' ? '' : `${printable(error.name)}: `;
    out.write(`  ${name}${printable(error.message, 2_000)}`);
    for (const line of stackLines(error.stack)) out.write(`    ${printable(line, 500)}`);
    for (const line of lastLines(error.stderr)) out.write(`  stderr: ${printable(line, 500)}`);
  }
}

/** An attempt as a JSON object: times in ISO format. */
export function attemptObject({ startedAt, endedAt, ...rest }: Attempt): object {
  return {
    ...rest,
    ...(startedAt === undefined ? {} : { startedAt: isoTime(startedAt), ms: Math.max(0, endedAt - startedAt) }),
    endedAt: isoTime(endedAt),
  };
}

function seconds(ms: number): string {
  return `${(Math.max(0, ms) / 1_000).toFixed(3)} s`;
}

/** Only the frames: name and message come before them. */
function stackLines(stack: string | undefined): string[] {
  const frames = (stack ?? '').split('\n').map((line) => line.trim());
  return frames.filter((line) => line.startsWith('at ')).slice(0, LINES);
}

function lastLines(text: string | undefined): string[] {
  return (text ?? '')
    .split('\n')
    .filter((line) => line !== '')
    .slice(-LINES);
}

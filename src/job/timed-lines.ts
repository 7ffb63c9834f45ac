/**
 * The form in which stores keep the log of a job and the last values of its progress: lines, each with the time at which it was
 * written in front. Lines of versions that kept no times have none. `record_progress.lua` writes the same form.
 */

/** Stands before and after the time. */
const MARK = '\x1f';
const TIMED = new RegExp(`^${MARK}([0-9]+)${MARK}`);
/** A line that was written in parts has a time in front of each. */
const TIMES = new RegExp(`${MARK}[0-9]+${MARK}`, 'g');
/** The beginning of a text may have been cut off within a time. */
const REST_OF_TIME = new RegExp(`^[0-9]*${MARK}`);
/** Characters kept of a value of progress beside its time. */
const LONGEST = 200;

/** A line of the log of a job, or a value of its progress, with the time at which it was written. */
export interface TimedLine {
  at: number;
  text: string;
}

/** Puts the time in front of every line. */
export function withTimes(text: string, at: number): string {
  const time = `${MARK}${at}${MARK}`;
  return text === '' ? '' : time + text.slice(0, -1).replaceAll('\n', `\n${time}`) + text.slice(-1);
}

/** A value of progress as one short line. */
export function progressLine(progress: string): string {
  const line = progress
    .slice(0, 2 * LONGEST)
    .replace(/\s+/g, ' ')
    .toWellFormed();
  return `${line.length > LONGEST ? `${line.slice(0, LONGEST)}…` : line}\n`;
}

/** A log as its writer wrote it, and when each of its lines was written, 0 if that is not known. */
export function readLog(stored: string): { log: string; logTimes: number[] } {
  const logTimes = linesOf(stored).map(({ at }) => at);
  const whole = TIMED.test(stored) ? stored : stored.replace(REST_OF_TIME, '');
  return { log: whole.replace(TIMES, ''), logTimes };
}

/** The last values of progress, oldest first; the first line may have been cut off. */
export function readProgressSteps(stored: string): TimedLine[] {
  return linesOf(stored).filter(({ at }) => at > 0);
}

function linesOf(stored: string): TimedLine[] {
  const lines = stored.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines.map((line) => {
    const time = TIMED.exec(line);
    return time ? { at: Number(time[1]), text: line.slice(time[0].length) } : { at: 0, text: line };
  });
}

import { fileURLToPath } from 'node:url';
import { type Result, type Running, type StartOptions, start } from '../../ring/support/w8y.js';

const BIN = fileURLToPath(new URL('../../../bin/crore', import.meta.url));

/** The command line with one store. */
export class Line {
  constructor(readonly url: string) {}

  /** Starts `crore ARGS…` and leaves it running. */
  start(args: string[], options: StartOptions = {}): Running {
    const env = { CRORE_STORE: this.url, NO_COLOR: '', ...options.env };
    return start(args, { ...options, env, command: [process.execPath, BIN] });
  }

  run(args: string[], options?: StartOptions): Promise<Result> {
    return this.start(args, options).ended;
  }

  /** Runs it and parses its lines of JSON; throws if it prints errors. */
  async json<T = Record<string, unknown>>(...args: string[]): Promise<T[]> {
    const { code, out, err } = await this.run([...args, '--json']);
    if (code !== 0 || err !== '') throw new Error(`crore ${args.join(' ')}: exit ${code}: ${err}`);
    return objects(out);
  }
}

const LINES = fileURLToPath(new URL('../../support/programs/lines.mjs', import.meta.url));

/** The results of many command lines, run by one process: for those that need no store and no signals. */
export async function runMany(
  lines: string[][],
  options: StartOptions = {},
): Promise<Omit<Result, 'stdout' | 'signal'>[]> {
  const { out, err } = await start([JSON.stringify(lines)], { ...options, command: [process.execPath, LINES] }).ended;
  if (err !== '') throw new Error(err);
  return objects(out);
}

/** Parses lines that must each be one JSON object. */
export function objects<T = Record<string, unknown>>(text: string): T[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as T);
}

/** Pids that children printed with `echo pid $$`. */
export function pidsIn(text: string): number[] {
  return [...text.matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid));
}

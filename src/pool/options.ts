import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { checkInteger, checkOptions, describe } from '../engine/input/check.js';
import { CroreError } from '../errors.js';
import { type Duration, milliseconds } from '../job/duration.js';
import { WORK_KNOWN, type WorkOptions } from '../worker/options.js';

/** Options of a worker whose handler is a module that runs in processes or threads. */
export interface ProcessOptions {
  /** How many processes run the handler, one job at a time each; default: `concurrency`, or the number of cores. */
  processes?: number;
  /** How many threads run the handler, instead of processes. */
  threads?: number;
  /**
   * How long a handler may go on after its signal was aborted by the end of the reservation, a cancellation or a lost lease, before
   * its process or thread is killed; default 1 s.
   */
  killAfter?: Duration;
  /** The JavaScript heap of each process or thread: bytes, or a text such as `512mb`. Default: what Node chooses. */
  maxMemory?: number | string;
}

export interface ResolvedProcessOptions {
  kind: 'process' | 'thread';
  killAfter: number;
  /** In megabytes. */
  maxMemory: number | undefined;
}

const OWN = ['processes', 'threads', 'killAfter', 'maxMemory'] as const;
const MOST = 1_000;
const MB = 1_048_576;
const UNITS: Record<string, number> = { kb: 1_024, mb: MB, gb: 1_024 * MB };
/** With less, Node does not start. */
const LEAST_MEMORY = 16;
const LONGEST = 2 ** 31 - 1;
/** In parts, because the bundler replaces the address of a module wherever it is written. */
const EXAMPLE = ["new URL('./handler.js', import", 'meta', 'url)'].join('.');

/** Splits the options of `work` into those of the processes and those of every worker. */
export function resolveProcessOptions(
  options: WorkOptions & ProcessOptions = {},
): [ResolvedProcessOptions, WorkOptions] {
  checkOptions(options, [...WORK_KNOWN, ...OWN], 'work');
  const { processes, threads, killAfter, maxMemory, ...work } = options;
  const size = sizeOf(options);
  const resolved = {
    kind: threads === undefined ? ('process' as const) : ('thread' as const),
    killAfter: killAfter === undefined ? 1_000 : Math.min(milliseconds(killAfter, 'killAfter'), LONGEST),
    maxMemory: maxMemory === undefined ? undefined : megabytes(maxMemory),
  };
  return [resolved, size === undefined ? work : { ...work, concurrency: size }];
}

/** How many processes or threads; undefined: as many as `concurrency` says. */
function sizeOf({ processes, threads, concurrency }: WorkOptions & ProcessOptions): number | undefined {
  if (processes !== undefined && threads !== undefined)
    throw new CroreError('BAD_OPTION', "work: 'processes' or 'threads', not both");
  const [name, size] = threads === undefined ? ['processes', processes] : ['threads', threads];
  if (size === undefined) return concurrency === undefined ? availableParallelism() : undefined;
  if (concurrency !== undefined)
    throw new CroreError('BAD_OPTION', `work: '${name}' says how many jobs run at once; leave out 'concurrency'`);
  return checkInteger(size, name!, 1, MOST);
}

function megabytes(memory: unknown): number {
  const match = typeof memory === 'string' ? /^(\d+(?:\.\d+)?)\s*(kb|mb|gb)$/i.exec(memory.trim()) : undefined;
  const bytes = match ? Number(match[1]) * UNITS[match[2]!.toLowerCase()]! : memory;
  if (typeof bytes !== 'number' || !Number.isFinite(bytes) || bytes < LEAST_MEMORY * MB) {
    const allowed = `bytes or a text such as '512mb', at least ${LEAST_MEMORY} MB`;
    throw new CroreError('BAD_OPTION', `maxMemory must be ${allowed}, not ${describe(memory)}`);
  }
  return Math.floor(bytes / MB);
}

/** Options of processes have no meaning for a function. */
export function refuseProcessOptions(options: object | undefined): void {
  const name = OWN.find((one) => (options as Record<string, unknown> | undefined)?.[one] !== undefined);
  if (name === undefined) return;
  throw new CroreError('BAD_OPTION', `work: '${name}' needs the URL of a module as handler: ${EXAMPLE}`);
}

export function refusePath(path: string): never {
  const given = describe(path);
  throw new CroreError('BAD_OPTION', `the handler must be a function or a URL, not ${given}: ${EXAMPLE}`);
}

/** The address of a handler module that exists. */
export function checkModule(module: URL): string {
  if (module.protocol !== 'file:')
    throw new CroreError('BAD_OPTION', `the handler must be the URL of a file, not ${describe(module.href)}`);
  if (!existsSync(fileURLToPath(module)))
    throw new CroreError('BAD_OPTION', `the handler module ${fileURLToPath(module)} does not exist`);
  return module.href;
}

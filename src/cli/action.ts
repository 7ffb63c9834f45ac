import { existsSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { CroreError } from '../errors.js';
import type { Crore, OpenOptions } from '../index.js';
import { redactUrl } from '../redact.js';
import { DEFAULT_URL, parseStoreUrl } from '../store/url.js';
import { Output } from './output.js';
import { type About, parse, storeOptions, withExamples } from './program.js';

/** What every command that talks to a store was asked. */
export interface StoreOptions {
  store?: string;
  json?: boolean;
}

export interface CommandSession {
  crore: Crore;
  out: Output;
}

const codes = new WeakMap<Command, number>();

/** Gives a command its work, which answers with an exit code. Its arguments are those of the line, then the options. */
export function action<Args extends unknown[]>(command: Command, act: (...args: Args) => Promise<number>): Command {
  return command.action(async (...args) => {
    codes.set(command, await act(...(args as unknown as Args)));
  });
}

/** Runs a command line; the exit code is that of the action it came to. */
export async function answer(command: Command, argv: string[]): Promise<number> {
  await parse(command, argv);
  return [command, ...command.commands].map((each) => codes.get(each)).find((code) => code !== undefined) ?? 0;
}

/** A command below another one, such as `ls` of `crore queue`, with the options of all that talk to a store. */
export function subcommand(parent: Command, usage: string, about: Omit<About, 'name'>): Command {
  const command = parent.command(usage).description(about.summary);
  return storeOptions(withExamples(command, about.examples));
}

/** Opens the store that the options name, and closes it whatever happens. Nothing is opened for a line that makes no sense. */
export async function withStore(
  options: StoreOptions,
  work: (session: CommandSession) => Promise<number>,
  { create = false }: { create?: boolean } = {},
): Promise<number> {
  const url = storeUrl(options);
  if (!create) mustExist(url);
  const crore = await openCrore(url, { onError: () => {} });
  try {
    return await work({ crore, out: new Output(options.json === true) });
  } finally {
    await crore.close();
  }
}

/** The library is loaded here: what needs no store does without it. */
export async function openCrore(url: string, options: OpenOptions): Promise<Crore> {
  const { open } = await import('../index.js');
  // `ps` shows the command line to everybody on the machine.
  return open(hideFromProcessList(url), options);
}

/** The URL itself, or the first line of the file it names as `@FILE`: a place for passwords that no list of processes shows. */
export function storeUrl({ store }: StoreOptions): string {
  const advice = adviceOnSecret('--store', store);
  if (advice !== undefined) process.stderr.write(`crore: warning: ${advice}\n`);
  return readStoreUrl(store ?? (process.env.CRORE_STORE || DEFAULT_URL));
}

/** The URL itself, or the first line of the file it names. */
export function readStoreUrl(url: string): string {
  if (!url.startsWith('@')) return url;
  try {
    return readFileSync(url.slice(1), 'utf8').split('\n')[0]!.trim();
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code;
    throw new CroreError('BAD_URL', `cannot read the store URL from ${url.slice(1)}: ${why}`, { cause: error });
  }
}

/** The store that was named, if any was. */
export function givenStore(options: StoreOptions): string | undefined {
  return options.store === undefined && !process.env.CRORE_STORE ? undefined : hideFromProcessList(storeUrl(options));
}

/** Advice for whoever gave a secret as a flag, which everybody on the machine can read until the process has hidden it. */
export function adviceOnSecret(flag: '--store' | '--token', value: unknown): string | undefined {
  if (typeof value !== 'string' || (flag === '--store' && redactUrl(value) === value)) return undefined;
  const [what, instead] =
    flag === '--store' ? ['password', '--store @FILE or $CRORE_STORE'] : ['token', '--token-file FILE or $CRORE_TOKEN'];
  return `the ${what} in ${flag} is in the list of processes for a moment: give ${instead} instead`;
}

/** The same URL, out of the sight of `ps` where it holds a password. */
export function hideFromProcessList(url: string): string {
  if (redactUrl(url) !== url) process.title = 'crore';
  return url;
}

/** Whoever only looks must not make an empty store by a slip of the pen. */
export function mustExist(url: string): void {
  const parsed = parseStoreUrl(url);
  if (parsed.kind !== 'sqlite' || parsed.file === ':memory:' || existsSync(parsed.file)) return;
  throw new CroreError(
    'STORE_UNREACHABLE',
    `there is no file ${parsed.file}; --store or CRORE_STORE names another store`,
  );
}

import { existsSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { CroreError } from '../errors.js';
import type { Crore, OpenOptions } from '../index.js';
import { redactUrl } from '../redact.js';
import { DEFAULT_URL, parseStoreUrl } from '../store/url.js';
import { Output } from './output.js';
import { type About, parse, storeOptions, withExamples } from './program.js';

/** Options of every command that talks to a store. */
export interface StoreOptions {
  store?: string;
  json?: boolean;
}

export interface CommandSession {
  crore: Crore;
  out: Output;
}

const codes = new WeakMap<Command, number>();

/** Sets a command's action, which resolves with an exit code. It receives the command's arguments, then the options. */
export function action<Args extends unknown[]>(command: Command, act: (...args: Args) => Promise<number>): Command {
  return command.action(async (...args) => {
    codes.set(command, await act(...(args as unknown as Args)));
  });
}

/** Runs a command line; returns the exit code of the action that ran. */
export async function answer(command: Command, argv: string[]): Promise<number> {
  await parse(command, argv);
  return [command, ...command.commands].map((each) => codes.get(each)).find((code) => code !== undefined) ?? 0;
}

/** A subcommand, such as `ls` of `crore queue`, with the options of all commands that talk to a store. */
export function subcommand(parent: Command, usage: string, about: Omit<About, 'name'>): Command {
  const command = parent.command(usage).description(about.summary);
  return storeOptions(withExamples(command, about.examples));
}

/** Opens the store named by the options, and always closes it. An invalid command line is refused before anything is opened. */
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

/** Loads the library only here, so that commands without a store do not load it. Commands report failures themselves. */
export async function openCrore(url: string, options: OpenOptions): Promise<Crore> {
  const { open } = await import('../index.js');
  // `ps` shows the command line to every user of the machine.
  return open(hideFromProcessList(url), { logger: false, ...options });
}

/** The URL itself, or the first line of the file named by `@FILE`, which keeps passwords out of the process list. */
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

/** The store that was given, if any. */
export function givenStore(options: StoreOptions): string | undefined {
  return options.store === undefined && !process.env.CRORE_STORE ? undefined : hideFromProcessList(storeUrl(options));
}

/** A warning for users who pass a secret as a flag, which every user of the machine can read until the process has hidden it. */
export function adviceOnSecret(flag: '--store' | '--token' | '--read-token', value: unknown): string | undefined {
  if (typeof value !== 'string' || (flag === '--store' && redactUrl(value) === value)) return undefined;
  const [what, instead] =
    flag === '--store'
      ? ['password', '--store @FILE or $CRORE_STORE']
      : ['token', `${flag}-file FILE or $CRORE_${flag.slice(2).toUpperCase().replace('-', '_')}`];
  return `the ${what} in ${flag} is briefly visible in the process list: use ${instead} instead`;
}

/** Returns the same URL, and hides it from `ps` if it contains a password. */
export function hideFromProcessList(url: string): string {
  if (redactUrl(url) !== url) process.title = 'crore';
  return url;
}

/** A read-only command must not create an empty store because of a typo. */
export function mustExist(url: string): void {
  const parsed = parseStoreUrl(url);
  if (parsed.kind !== 'sqlite' || parsed.file === ':memory:' || existsSync(parsed.file)) return;
  throw new CroreError(
    'STORE_UNREACHABLE',
    `no such file: ${parsed.file}; use --store or CRORE_STORE to select another store`,
  );
}

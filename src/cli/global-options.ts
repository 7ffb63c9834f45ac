import { CroreError } from '../errors.js';
import { COMMANDS } from './command-table.js';

/** Options that may also come before the command: those that nearly every command knows. */

const SEE = "see 'crore --help'";
/** What may come first instead of a command. */
const OWN = ['--help', '-h', '--version'];

/** `--store X queue ls` becomes `queue ls --store X`. An option that is not known before the command is refused. */
export function moveBehindCommand(argv: readonly string[]): string[] {
  const taken: string[] = [];
  const left = [...argv];
  while (left[0]?.startsWith('-') && !OWN.includes(left[0])) taken.push(...takeOption(left));
  const [command, ...rest] = left;
  if (taken.length === 0) return left;
  if (command === undefined) throw new CroreError('BAD_OPTION', `missing command; ${SEE}`);
  if (command === 'help' || OWN.includes(command)) return left;
  // Directly behind the words that select the command, where no other option can take them for its value.
  const words = hasSubcommands(command) && rest[0] !== undefined && !rest[0].startsWith('-') ? 1 : 0;
  return [command, ...rest.slice(0, words), ...taken, ...rest.slice(words)];
}

/** Removes the first option and its value from `left`, and returns them. */
function takeOption(left: string[]): string[] {
  const option = left.shift()!;
  const [name, value] = option.split(/=(.*)/s, 2);
  if (name === '--json') {
    if (value === undefined) return [option];
    throw new CroreError('BAD_OPTION', `option '--json' does not take an argument; ${SEE}`);
  }
  if (name !== '--store') {
    const known = 'known there: --store, --json';
    throw new CroreError('BAD_OPTION', `unknown option '${name}' before the command (${known}); ${SEE}`);
  }
  if (value !== undefined) return [option];
  const next = left.shift();
  if (next === undefined) throw new CroreError('BAD_OPTION', `option '--store <url>' argument missing; ${SEE}`);
  return [option, next];
}

function hasSubcommands(command: string): boolean {
  return COMMANDS.some(({ name, subcommands }) => name === command && subcommands);
}

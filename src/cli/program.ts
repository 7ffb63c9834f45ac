import { Command, CommanderError } from 'commander';
import { CroreError } from '../errors.js';
import { COMMANDS } from './command-table.js';
import { print } from './output.js';

export const BAD_USAGE = 2;

export interface About {
  /** Such as `crore push`. */
  name: string;
  /** What it does, in its first line of help. */
  summary: string;
  /** What else a user has to know. */
  details?: string;
  /** Example command lines, each with an explanation. */
  examples: readonly (readonly [line: string, what: string])[];
}

/** A command with the conventions of this program: unknown options are refused in one line, help ends with examples. */
export function program({ name, summary, details, examples }: About): Command {
  const { seeAlso } = COMMANDS.find((listed) => name === `crore ${listed.name}`) ?? {};
  const description = [summary, seeAlso, details].filter((part) => part !== undefined).join('\n');
  return withExamples(quiet(new Command(name).description(description)), examples);
}

export function withExamples(command: Command, examples: About['examples']): Command {
  const width = Math.max(...examples.map(([line]) => line.length));
  const shown = examples.map(([line, what]) => `  ${line.padEnd(width)}   # ${what}`);
  return command.addHelpText('after', `\nExamples:\n${shown.join('\n')}`);
}

/** Throws errors instead of printing them; also for subcommands, which `command.command()` creates with these settings. */
function quiet(command: Command): Command {
  return command
    .exitOverride()
    .configureOutput({ writeOut: print, writeErr: () => {} })
    .helpOption('-h, --help', 'Print this help.')
    .showHelpAfterError(false);
}

/** The options of every command that talks to a store. */
export function storeOptions(command: Command): Command {
  return command
    .option(
      '--store <url>',
      'The store: sqlite:FILE, redis://…, or @FILE, a file that contains the URL (default: $CRORE_STORE, else sqlite:crore.db).',
    )
    .option('--json', 'Print one JSON object per line.');
}

/** Runs a command line. `action` returns the exit code of the command that ran. */
export async function parse(command: Command, argv: string[]): Promise<void> {
  try {
    await command.parseAsync(argv, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return;
    const help = error.code === 'commander.help';
    const why = help ? 'missing command' : error.message.replace(/^error: |\.$/g, '');
    throw new CroreError('BAD_OPTION', `${why}; see '${command.name()} --help'`);
  }
}

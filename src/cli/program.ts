import { Command, CommanderError } from 'commander';
import { CroreError } from '../errors.js';
import { print } from './output.js';

export const BAD_USAGE = 2;

export interface About {
  /** Such as `crore push`. */
  name: string;
  summary: string;
  /** Example command lines, each with an explanation. */
  examples: readonly (readonly [line: string, what: string])[];
}

/** A command with the conventions of this program: unknown options are refused in one line, help ends with examples. */
export function program({ name, summary, examples }: About): Command {
  return withExamples(quiet(new Command(name).description(summary)), examples);
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
    .helpOption('-h, --help', 'Print this.')
    .showHelpAfterError(false);
}

/** The options of every command that talks to a store. */
export function storeOptions(command: Command): Command {
  return command
    .option(
      '--store <url>',
      'The store: sqlite:FILE, redis://…, or @FILE that holds the URL (default: $CRORE_STORE, else sqlite:crore.db).',
    )
    .option('--json', 'Print one JSON object a line.');
}

/** Runs a command line. `action` returns the exit code of the command that ran. */
export async function parse(command: Command, argv: string[]): Promise<void> {
  try {
    await command.parseAsync(argv, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode === 0) return;
    const help = error.code === 'commander.help';
    const why = help ? 'a command is missing' : error.message.replace(/^error: |\.$/g, '');
    throw new CroreError('BAD_OPTION', `${why}; '${command.name()} --help' explains`);
  }
}

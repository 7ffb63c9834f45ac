import { readFileSync } from 'node:fs';
import { CroreError, ERRORS, isCroreError } from '../errors.js';
import { COMMANDS } from './command-table.js';
import { moveBehindCommand } from './global-options.js';
import { print } from './output.js';
import { guardStreams } from './streams.js';

const BAD_USAGE = 2;

/** The command line: the only place that reads argv, handles signals and ends the process. */
export async function main(argv: string[]): Promise<void> {
  guardStreams();
  try {
    const [command, ...rest] = moveBehindCommand(argv);
    process.exitCode = await dispatch(command, rest);
  } catch (error) {
    const known = isCroreError(error);
    process.stderr.write(`crore: ${known ? oneLine(error.message) : ((error as Error).stack ?? error)}\n`);
    process.exitCode = known ? ERRORS[error.code].exit : 1;
  }
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ');
}

async function dispatch(command: string | undefined, rest: string[]): Promise<number> {
  if (command === 'help' && rest.length > 0) return dispatch(rest[0], [...rest.slice(1), '--help']);
  switch (command) {
    case '--version':
      print(`${version()}\n`);
      return 0;
    case undefined:
    case 'help':
    case '--help':
    case '-h':
      print(help());
      return command === undefined ? BAD_USAGE : 0;
  }
  const listed = COMMANDS.find(({ name }) => name === command);
  if (!listed) throw new CroreError('BAD_OPTION', `unknown command '${command}'; see 'crore --help'`);
  const { run } = await listed.load();
  return run(rest);
}

function help(): string {
  const width = Math.max(...COMMANDS.map(({ usage }) => usage.length));
  const lines = COMMANDS.map(({ usage, summary }) => `  ${usage.padEnd(width)}   ${summary}`);
  return `Usage: crore COMMAND [OPTIONS]

One job engine with several interfaces. Commands ('crore COMMAND --help' explains each):

${lines.join('\n')}

  --version, --help, and before any command --store URL and --json, as if they came after it

Examples:
  crore demo --for 20
  crore push mails '{"to":"ada@example.org"}'
  crore work mails -- ./send-mail {}
  crore ring -u redis://localhost -k feeds -c ./poll.sh {}

The store is --store, else $CRORE_STORE, else sqlite:crore.db. The library is documented in README.md and docs/.
`;
}

function version(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}

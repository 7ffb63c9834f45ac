import { readFileSync } from 'node:fs';
import { CroreError } from '../errors.js';

const HELP = `Usage: crore COMMAND [OPTIONS]

One work engine with many doors. Commands:

  demo [--for SECONDS]   A live demonstration on a private database: jobs come, run, fail, are retried; a worker process
                         is killed now and then, and nothing is lost. Ctrl-C ends it.
  ring …                 Any executable, run with the next item of a ring, under a lock. The same as w8y: see
                         'crore ring --help'.

  --version              Prints the version.
  --help                 Prints this.

Examples:
  crore demo --for 20
  crore ring -u redis://localhost -k feeds -c ./poll.sh {}

The library is documented in README.md and docs/.
`;

const BAD_USAGE = 2;

/** The command line: the only place that reads argv, hears signals and ends the process. */
export async function main(argv: string[]): Promise<void> {
  const [command, ...rest] = argv;
  try {
    process.exitCode = await dispatch(command, rest);
  } catch (error) {
    process.stderr.write(`crore: ${error instanceof CroreError ? error.message : ((error as Error).stack ?? error)}\n`);
    process.exitCode = error instanceof CroreError ? BAD_USAGE : 1;
  }
}

async function dispatch(command: string | undefined, rest: string[]): Promise<number> {
  switch (command) {
    case 'demo': {
      const { demo } = await import('./demo.js');
      return demo(rest);
    }
    case 'ring': {
      const { ring } = await import('../ring/command.js');
      process.exit(await ring(rest));
      break;
    }
    case '--version':
      process.stdout.write(`${version()}\n`);
      return 0;
    case undefined:
    case 'help':
    case '--help':
    case '-h':
      process.stdout.write(HELP);
      return command === undefined ? BAD_USAGE : 0;
    default:
      process.stderr.write(`crore: unknown command '${command}'; 'crore --help' lists them\n`);
      return BAD_USAGE;
  }
}

function version(): string {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  return version;
}

import { writeSync } from 'node:fs';
import { CroreError } from '../errors.js';
import { type Log, openLog } from '../process/log.js';
import { redact } from '../redact.js';
import { type Options, parseArgs } from './args.js';
import { hasSecret, parseUrl, type Target } from './url.js';

const FORWARDED = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;
const USAGE = 2;

/** `w8y` and `crore ring`: runs the command line and resolves with the exit code. */
export async function ring(argv: readonly string[]): Promise<number> {
  try {
    const options = parseArgs(argv, process.env);
    if (options.help) return await help();
    const target = parseUrl(options.url);
    const { quiet, logFile: file, timestamps } = options;
    return await start(options, target, openLog({ quiet, file, timestamps }));
  } catch (error) {
    if (!(error instanceof CroreError)) throw error;
    writeSync(2, `w8y: ${redact(error.message)}\n`);
    return USAGE;
  }
}

async function help(): Promise<number> {
  const { HELP } = await import('./help.js');
  writeSync(1, HELP);
  return 0;
}

async function start(options: Options, target: Target, log: Log): Promise<number> {
  // `ps` shows the command line to every user of the machine.
  if (hasSecret(options.url)) process.title = 'w8y';
  if (options.prefix === '') log(`warning: no key prefix, so the keys are list and ${options.lockName}:ITEM`);
  const { openRingStore } = await import('./open.js');
  const { Runner } = await import('./runner.js');
  const store = await openRingStore(target, options);
  const runner = new Runner(options, store, log);
  const unhook = hook(runner);
  try {
    return await runner.run();
  } finally {
    // Runs after the caller's own exit, if it exits: the kernel closes sockets faster, which saves 1 ms of a start that
    // finds nothing.
    setImmediate(() => {
      unhook();
      store.close();
    });
  }
}

interface Hooked {
  signal(name: NodeJS.Signals, number: number, again: boolean): void;
  suspend(): void;
  resume(): Promise<void>;
}

/** Installs all signal handlers of the wrapper. A second TERM or INT means that the first had no effect. */
function hook(runner: Hooked): () => void {
  let asked = 0;
  const onSignal = (name: NodeJS.Signals, number: number): void => {
    if (name === 'SIGTERM' || name === 'SIGINT') asked += 1;
    runner.signal(name, number, asked > 1);
  };
  const onSuspend = (): void => {
    runner.suspend();
    process.kill(process.pid, 'SIGSTOP');
  };
  const onResume = (): void => void runner.resume();
  for (const name of FORWARDED) process.on(name, onSignal);
  process.on('SIGTSTP', onSuspend).on('SIGCONT', onResume);
  return () => {
    for (const name of FORWARDED) process.off(name, onSignal);
    process.off('SIGTSTP', onSuspend).off('SIGCONT', onResume);
  };
}

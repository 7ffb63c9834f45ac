import { accessSync, constants, statSync, writeSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { checkName } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import type { ActiveJob } from '../../index.js';
import { writeLine } from '../../process/log.js';
import { resolveWorkOptions } from '../../worker/options.js';
import { action, answer, openCrore, type StoreOptions, storeUrl } from '../action.js';
import { duration, notBoth, whole } from '../option-values.js';
import { printable } from '../output.js';
import { program, storeOptions } from '../program.js';
import type { Report } from './child-job.js';
import { ExecWorker, type ExecWorkerSettings } from './exec-worker.js';
import { exitOutcomes } from './exit-codes.js';

interface WorkLine extends StoreOptions {
  jobs?: string;
  env?: string;
  stdin?: boolean;
  result?: boolean;
  tasks?: string;
  exitCodes?: string[];
  timeout?: string;
  grace?: string;
  lease?: string;
  name?: string;
  once?: boolean;
  drain?: boolean;
  quiet?: boolean;
}

const GRACE = 10_000;
const LEASE = 10_000;

export function run(argv: string[]): Promise<number> {
  const cut = argv.indexOf('--');
  const [line, executable] = cut < 0 ? [argv, undefined] : [argv.slice(0, cut), argv.slice(cut + 1)];
  const command = program({
    name: 'crore work',
    summary: 'Run an executable for each job of a queue; its exit code decides the outcome.',
    details:
      "The payload replaces {} in the arguments and is in $CRORE_PAYLOAD. Exit codes: 0 done, 75 retry, 100 dead, any other retry. No shell is involved, and '{}' is always one argument.",
    examples: [
      ['crore work mails -- ./send-mail {}', 'one job at a time'],
      ['crore work sounds -j 4 --timeout 5m -- ffmpeg -i {} {}.ogg', 'four at once, at most five minutes each'],
      [
        'crore work sums --result -- jq -n "\\$ENV.CRORE_PAYLOAD | fromjson | add"',
        'the last line of output is the result',
      ],
      ['crore work mails --stdin --drain -- ./send-mail', 'payload on standard input; exit when no job is ready'],
      ['crore work mails --exit-codes 3=done,4=dead -- ./send-mail {}', 'map exit codes to outcomes'],
    ],
  })
    .usage('[options] <queue> -- <executable> [arguments...]')
    .argument('<queue>', 'Name of the queue.')
    .option('-j, --jobs <n>', 'Number of jobs to run at once (default: 1).')
    .option('--env <name>', 'Environment variable for the payload (default: CRORE_PAYLOAD).')
    .option('--stdin', 'Pass the payload on standard input, and in no variable unless --env is given.')
    .option('--result', 'Use the last line of standard output as the result: JSON if it parses, else text.')
    .option('--tasks <kind>', 'Pass raw tasks as bytes, text or json (default: bytes).')
    .option('--exit-codes <list>', 'Map exit codes to outcomes, such as 3=done,4=dead,5=retry.', collect)
    .option('--timeout <time>', 'Stop an executable that runs longer; the job is retried.')
    .option('--grace <time>', 'Time between SIGTERM and SIGKILL (default: 10s).')
    .option(
      '--lease <time>',
      'Without a heartbeat for this long, the worker counts as dead and its jobs go to others (default: 10s).',
    )
    .option('--name <name>', 'Name of the worker (default: host and process id).')
    .option('--once', 'Run one job, or none if none is ready, and exit.')
    .option('--drain', 'Exit when no job is ready or the queue is paused.')
    .option('-q, --quiet', 'Do not print a line on standard error for each job.');
  action(storeOptions(command), (queue: string, options: WorkLine) => work(queue, executable, options));
  return answer(command, line);
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}

async function work(queue: string, executable: string[] | undefined, options: WorkLine): Promise<number> {
  const settings = resolve(queue, executable, options);
  const warn = calmly((text) => writeLine(2, `crore: ${text.replace(/\s*\n\s*/g, ' ')}\n`));
  const crore = await openCrore(storeUrl(options), { onError: (error, what) => warn(`${what}: ${error.message}`) });
  const worker = new ExecWorker(crore, settings, { ended: reporter(settings, options.quiet === true), warn });
  const unhook = hook(worker);
  try {
    return await worker.run();
  } finally {
    await crore.close();
    unhook();
  }
}

function resolve(queue: string, executable: string[] | undefined, options: WorkLine): ExecWorkerSettings {
  checkName(queue, 'queue name');
  notBoth(options, 'once', 'drain');
  notBoth(options, 'once', 'jobs');
  const lease = duration(options.lease, '--lease') ?? LEASE;
  const workOptions = {
    concurrency: whole(options.jobs, '--jobs', 1, 10_000) ?? 1,
    tasks: options.tasks as 'bytes' | undefined,
    lease,
    name: options.name,
  };
  const { CRORE_PAYLOAD: _, ...env } = process.env; // set by a surrounding worker
  resolveWorkOptions(workOptions); // refuses invalid options before anything is opened
  return {
    queue,
    command: checkExecutable(executable),
    env,
    envVar: options.env === undefined ? (options.stdin ? '' : 'CRORE_PAYLOAD') : checkVariable(options.env),
    stdin: options.stdin === true,
    result: options.result === true,
    json: options.json === true,
    outcome: exitOutcomes(options.exitCodes ?? []),
    timeout: checkTimer(duration(options.timeout, '--timeout'), '--timeout', 1),
    grace: checkTimer(duration(options.grace, '--grace'), '--grace', 0) ?? GRACE,
    lease,
    until: options.once ? 'one' : options.drain ? 'empty' : 'stopped',
    work: workOptions,
  };
}

/** Node's timers support at most 24 days; a longer delay would fire at once. */
function checkTimer(ms: number | undefined, what: string, least: number): number | undefined {
  if (ms === undefined || (ms >= least && ms <= 2_000_000_000)) return ms;
  throw new CroreError('BAD_OPTION', `${what} must be from ${least} ms to 23 days, not ${ms} ms`);
}

function checkVariable(name: string): string {
  if (/^[^=\0]+$/.test(name) && !/^CRORE_(ID|QUEUE|ATTEMPT|TOKEN)$/.test(name)) return name;
  throw new CroreError('BAD_OPTION', `--env '${name}' is an invalid or reserved variable name`);
}

/** A missing executable would fail every job of the queue, so this checks for it before claiming the first. */
function checkExecutable(command: string[] | undefined): string[] {
  const [file] = command ?? [];
  if (!file)
    throw new CroreError('BAD_OPTION', "no executable: give it after '--', as in crore work QUEUE -- ./program {}");
  const places = file.includes('/') ? [file] : (process.env.PATH ?? '').split(delimiter).map((dir) => join(dir, file));
  if (!places.some(isExecutable)) {
    const there = file.includes('/') && statSync(file, { throwIfNoEntry: false });
    throw new CroreError('BAD_OPTION', `cannot run ${file}: ${there ? 'permission denied' : 'not found'}`);
  }
  return command!;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Writes lines directly to the file descriptors, which the children share. */
function reporter({ queue, json }: ExecWorkerSettings, quiet: boolean) {
  return (job: ActiveJob<unknown>, { outcome, code, signal, seconds }: Report): void => {
    const rounded = Number(seconds.toFixed(3));
    const object = {
      queue,
      id: job.isTask ? null : job.id,
      attempt: job.attempt,
      outcome,
      exit: code,
      signal,
      seconds: rounded,
    };
    if (json) writeAll(1, `${JSON.stringify(object)}\n`);
    if (json || quiet) return;
    const how = signal ? `killed by ${signal}` : `exit ${code}`;
    const name = job.isTask ? 'task' : printable(job.id);
    writeLine(2, `crore: ${name}: ${outcome}, ${how} after ${rounded} s\n`);
  };
}

/** A closed reader, or a pipe that is full for a moment, must not end the worker. */
function writeAll(sink: number, line: string): void {
  for (let left = Buffer.from(line), tries = 0; left.length > 0 && tries < 1_000; tries++) {
    try {
      left = left.subarray(writeSync(sink, left));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

const REPEAT = 10_000;

/** Suppresses a message that was just printed: an unreachable store fails every call with the same one. */
function calmly(say: (text: string) => void): (text: string) => void {
  let [last, at] = ['', 0];
  return (text) => {
    const now = performance.now();
    if (text === last && now - at < REPEAT) return;
    [last, at] = [text, now];
    say(text);
  };
}

const ENDS = { SIGTERM: 0, SIGINT: 130, SIGHUP: 129 } as const;

/** The first signal asks all children to end; a second one kills them. Ctrl-Z stops the children, too. */
function hook(worker: ExecWorker): () => void {
  let asked = false;
  const onEnd = (name: NodeJS.Signals) => {
    if (asked) worker.signalChildren('SIGKILL');
    asked = true;
    worker.stop(ENDS[name as keyof typeof ENDS]);
  };
  const onSuspend = () => {
    worker.signalChildren('SIGSTOP');
    process.kill(process.pid, 'SIGSTOP');
  };
  const onResume = () => worker.signalChildren('SIGCONT');
  const names = Object.keys(ENDS) as NodeJS.Signals[];
  for (const name of names) process.on(name, onEnd);
  process.on('SIGTSTP', onSuspend).on('SIGCONT', onResume);
  return () => {
    for (const name of names) process.off(name, onEnd);
    process.off('SIGTSTP', onSuspend).off('SIGCONT', onResume);
  };
}

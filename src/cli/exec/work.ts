import { accessSync, constants, statSync, writeSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { checkName } from '../../engine/check.js';
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
    summary:
      "Run an executable for each job of a queue. It gets the payload in place of {} in its arguments, and as $CRORE_PAYLOAD; its exit code says what becomes of the job: 0 done, 75 try again, 100 dead, any other try again. No shell is involved, and '{}' is always one argument.",
    examples: [
      ['crore work mails -- ./send-mail {}', 'one after the other'],
      ['crore work sounds -j 4 --timeout 5m -- ffmpeg -i {} {}.ogg', 'four at once, none longer than five minutes'],
      ['crore work sums --result -- jq -n "\\$ENV.CRORE_PAYLOAD | fromjson | add"', 'its last line is the result'],
      ['crore work mails --stdin --drain -- ./send-mail', 'payload on standard input; end when nothing is ready'],
      ['crore work mails --exit-codes 3=done,4=dead -- ./send-mail {}', 'what its exit codes mean'],
    ],
  })
    .usage('[options] <queue> -- <executable> [arguments...]')
    .argument('<queue>', 'Name of the queue.')
    .option('-j, --jobs <n>', 'How many at once (default: 1).')
    .option('--env <name>', 'The variable that holds the payload (default: CRORE_PAYLOAD).')
    .option('--stdin', 'Give the payload on standard input, and in no variable unless --env names one.')
    .option('--result', "The last line of standard output is the job's result: JSON if it parses, else text.")
    .option('--tasks <kind>', 'Raw tasks are given as bytes, text or json (default: bytes).')
    .option('--exit-codes <list>', 'What exit codes mean, such as 3=done,4=dead,5=retry.', collect)
    .option('--timeout <time>', 'End an executable that takes longer; the job is tried again.')
    .option('--grace <time>', 'Time between SIGTERM and SIGKILL (default: 10s).')
    .option('--lease <time>', 'A worker not heard of for this long is dead, and its jobs go to others (default: 10s).')
    .option('--name <name>', 'Name of the worker (default: host and process id).')
    .option('--once', 'Work on one job, or on none if none is ready, and end.')
    .option('--drain', 'End when nothing is ready, or the queue is paused.')
    .option('-q, --quiet', 'No line on standard error for each job.');
  action(storeOptions(command), (queue: string, options: WorkLine) => work(queue, executable, options));
  return answer(command, line);
}

function collect(value: string, before: string[] = []): string[] {
  return [...before, value];
}

async function work(queue: string, executable: string[] | undefined, options: WorkLine): Promise<number> {
  const settings = resolve(queue, executable, options);
  const trouble = calmly((text) => writeLine(2, `crore: ${text.replace(/\s*\n\s*/g, ' ')}\n`));
  const crore = await openCrore(storeUrl(options), { onError: (error, what) => trouble(`${what}: ${error.message}`) });
  const shift = new ExecWorker(crore, settings, { ended: teller(settings, options.quiet === true), trouble });
  const unhook = hook(shift);
  try {
    return await shift.run();
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
    until: options.once ? 'one' : options.drain ? 'empty' : 'told',
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
  throw new CroreError('BAD_OPTION', `--env '${name}' is not a name for the variable of the payload`);
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
function teller({ queue, json }: ExecWorkerSettings, quiet: boolean) {
  return (job: ActiveJob<unknown>, { outcome, code, signal, seconds }: Report): void => {
    const rounded = Number(seconds.toFixed(3));
    const object = { queue, id: job.id ?? null, attempt: job.attempt, outcome, exit: code, signal, seconds: rounded };
    if (json) writeAll(1, `${JSON.stringify(object)}\n`);
    if (json || quiet) return;
    const how = signal ? `killed by ${signal}` : `exit ${code}`;
    const name = job.id === undefined ? 'task' : printable(job.id);
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
function hook(shift: ExecWorker): () => void {
  let asked = false;
  const onEnd = (name: NodeJS.Signals) => {
    if (asked) shift.signalChildren('SIGKILL');
    asked = true;
    shift.stop(ENDS[name as keyof typeof ENDS]);
  };
  const onSuspend = () => {
    shift.signalChildren('SIGSTOP');
    process.kill(process.pid, 'SIGSTOP');
  };
  const onResume = () => shift.signalChildren('SIGCONT');
  const names = Object.keys(ENDS) as NodeJS.Signals[];
  for (const name of names) process.on(name, onEnd);
  process.on('SIGTSTP', onSuspend).on('SIGCONT', onResume);
  return () => {
    for (const name of names) process.off(name, onEnd);
    process.off('SIGTSTP', onSuspend).off('SIGCONT', onResume);
  };
}

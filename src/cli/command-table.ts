/** What a command's file exports; `run` resolves with the exit code. */
export interface Command {
  run(argv: string[]): Promise<number>;
}

interface Listed {
  name: string;
  /** Arguments and one sentence, for `crore --help`. */
  usage: string;
  summary: string;
  /** Loaded on demand, so that no command loads the imports of another. */
  load: () => Promise<Command>;
}

/** Every command, in the order of the help. To add one, add a file next to this one that exports `run`, and a row here. */
export const COMMANDS: readonly Listed[] = [
  {
    name: 'serve',
    usage: 'serve [--store URL] [--addr HOST:PORT] …',
    summary: 'Serve a store to any language: the lakh protocol, crore.v1 and HTTP/JSON.',
    load: () => import('./server-commands/serve.js'),
  },
  {
    name: 'config',
    usage: 'config [--show-origin]',
    summary: 'Print the settings of serve as they hold here, and where each came from.',
    load: () => import('./server-commands/config.js'),
  },
  {
    name: 'push',
    usage: 'push QUEUE [PAYLOAD …]',
    summary: 'Add jobs, from arguments or the lines of standard input; print their ids.',
    load: () => import('./job-commands/push.js'),
  },
  {
    name: 'work',
    usage: 'work QUEUE -- EXECUTABLE …',
    summary: 'Run an executable for each job; its exit code decides what becomes of the job.',
    load: () => import('./exec/work.js'),
  },
  {
    name: 'wait',
    usage: 'wait QUEUE ID',
    summary: 'Wait until a job has ended; print its result.',
    load: () => import('./job-commands/wait.js'),
  },
  {
    name: 'job',
    usage: 'job ls|show|retry|cancel|rm QUEUE [ID …]',
    summary: 'Look at jobs, try dead ones again, cancel, forget.',
    load: () => import('./job-commands/job.js'),
  },
  {
    name: 'dead',
    usage: 'dead ls|retry|rm QUEUE [ID …]',
    summary: 'Look at dead jobs, try them again, forget them: some, those that match, or all.',
    load: () => import('./job-commands/dead.js'),
  },
  {
    name: 'queue',
    usage: 'queue ls|pause|resume|clear|limits [QUEUE]',
    summary: 'Count, pause, resume and clear queues; say how fast they may go.',
    load: () => import('./job-commands/queue.js'),
  },
  {
    name: 'events',
    usage: 'events QUEUE',
    summary: 'Watch what happens to the jobs of a queue, in every process.',
    load: () => import('./job-commands/events.js'),
  },
  {
    name: 'worker',
    usage: 'worker [-j N] | worker ls [QUEUE]',
    summary: 'Join running flows as a worker; list live workers.',
    load: () => import('./flow-commands/worker.js'),
  },
  {
    name: 'schedule',
    usage: 'schedule ls|add|rm|run [NAME]',
    summary: 'Have jobs made again and again, by a cron expression or every so often.',
    load: () => import('./job-commands/schedule.js'),
  },
  {
    name: 'demo',
    usage: 'demo [--for SECONDS]',
    summary: 'Watch jobs come, run, fail and be retried while a worker is killed now and then.',
    load: () => import('./server-commands/demo.js'),
  },
  {
    name: 'run',
    usage: 'run FILE [-j N] [OPTIONS]',
    summary: 'Run a flow: commands, functions and jobs with dependencies between them.',
    load: () => import('./flow-commands/run.js'),
  },
  {
    name: 'flow',
    usage: 'flow ls | show | graph | cancel | retry',
    summary: 'Look at flows, draw them, stop them, run their failed nodes again.',
    load: () => import('./flow-commands/flow.js'),
  },
  {
    name: 'why',
    usage: 'why NODE [FILE]',
    summary: 'Say why a node of a flow would run, or why not.',
    load: () => import('./flow-commands/why.js'),
  },
  {
    name: 'ring',
    usage: 'ring [OPTIONS] EXECUTABLE …',
    summary: 'Run any executable with the next item of a ring, under a lock. The same as w8y.',
    load: () => import('./exec/ring.js'),
  },
];

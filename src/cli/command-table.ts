/** What a command's file exports; `run` resolves with the exit code. */
export interface Command {
  run(argv: string[]): Promise<number>;
}

interface Listed {
  name: string;
  /** Arguments and one sentence, for `crore --help`. */
  usage: string;
  summary: string;
  /** Where to look for what the name may also suggest; part of its own help. */
  seeAlso?: string;
  /** Its first argument is the name of a subcommand, as in `crore queue ls`. */
  subcommands?: true;
  /** Loaded on demand, so that no command loads the imports of another. */
  load: () => Promise<Command>;
}

/** Every command, in the order of the help. To add one, add a file next to this one that exports `run`, and a row here. */
export const COMMANDS: readonly Listed[] = [
  {
    name: 'serve',
    usage: 'serve [--store URL] [--addr HOST:PORT] …',
    summary: 'Start a job server: a dashboard, the Lakh protocol, crore.v1 and HTTP/JSON.',
    load: () => import('./server-commands/serve.js'),
  },
  {
    name: 'config',
    usage: 'config [--show-origin]',
    summary: 'Print the effective settings of serve, and where each comes from.',
    load: () => import('./server-commands/config.js'),
  },
  {
    name: 'backup',
    usage: 'backup FILE',
    summary: 'Write a complete copy of a SQLite store to a new file, while others use it.',
    load: () => import('./server-commands/backup.js'),
  },
  {
    name: 'schema',
    usage: 'schema print|migrate [--role NAME]',
    summary: 'Print or run the SQL that creates or migrates the tables of a store on PostgreSQL.',
    subcommands: true,
    load: () => import('./server-commands/schema.js'),
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
    summary: 'Run an executable for each job of a queue; its exit code decides the outcome.',
    seeAlso: 'To join running flows as a worker, see crore worker.',
    load: () => import('./exec/work.js'),
  },
  {
    name: 'worker',
    usage: 'worker [-j N] | worker ls [QUEUE]',
    summary: 'Join running flows and run their nodes; or list live workers.',
    seeAlso: 'To run an executable for the jobs of a queue, see crore work.',
    subcommands: true,
    load: () => import('./flow-commands/worker.js'),
  },
  {
    name: 'wait',
    usage: 'wait QUEUE ID',
    summary: 'Wait until a job has ended; print its result.',
    load: () => import('./job-commands/wait.js'),
  },
  {
    name: 'job',
    usage: 'job ls|show|tree|retry|cancel|rm QUEUE [ID …]',
    summary: 'List, show, change, move, retry, cancel and remove jobs.',
    subcommands: true,
    load: () => import('./job-commands/job.js'),
  },
  {
    name: 'batch',
    usage: 'batch open|close|show|cancel QUEUE [ID]',
    summary: 'Open, close, show and cancel batches: jobs that belong together.',
    subcommands: true,
    load: () => import('./job-commands/batch.js'),
  },
  {
    name: 'dead',
    usage: 'dead ls|retry|rm QUEUE [ID …]',
    summary: 'List, retry and remove dead jobs: by id, by filter, or all.',
    subcommands: true,
    load: () => import('./job-commands/dead.js'),
  },
  {
    name: 'queue',
    usage: 'queue ls|pause|resume|clear|limits|breaker [QUEUE]',
    summary: 'Count, pause, resume and clear queues; show and set their limits and breakers.',
    subcommands: true,
    load: () => import('./job-commands/queue.js'),
  },
  {
    name: 'events',
    usage: 'events QUEUE',
    summary: 'Print the events of a queue as they happen.',
    load: () => import('./job-commands/events.js'),
  },
  {
    name: 'schedule',
    usage: 'schedule ls|add|rm|run [NAME]',
    summary: 'Manage recurring jobs: by cron expression or interval.',
    subcommands: true,
    load: () => import('./job-commands/schedule.js'),
  },
  {
    name: 'demo',
    usage: 'demo [--for SECONDS]',
    summary: 'Run a demo: jobs are added, fail and are retried while workers are killed.',
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
    summary: 'List, show, draw, cancel and retry flows.',
    subcommands: true,
    load: () => import('./flow-commands/flow.js'),
  },
  {
    name: 'why',
    usage: 'why NODE [FILE]',
    summary: 'Explain why a node of a flow would run or not.',
    load: () => import('./flow-commands/why.js'),
  },
  {
    name: 'ring',
    usage: 'ring [OPTIONS] EXECUTABLE …',
    summary: 'Run any executable with the next item of a ring, under a lock. The same as w8y.',
    load: () => import('./exec/ring.js'),
  },
];

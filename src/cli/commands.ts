/** What a command's file exports: the exit code is its answer. */
export interface Command {
  run(argv: string[]): Promise<number>;
}

interface Listed {
  name: string;
  /** Arguments and one sentence, for `crore --help`. */
  usage: string;
  summary: string;
  /** Loaded only when it is asked for: no command pays for another one's imports. */
  load: () => Promise<Command>;
}

/** Every command, in the order of the help. To add one: a file beside this one that exports `run`, and a row here. */
export const COMMANDS: readonly Listed[] = [
  {
    name: 'demo',
    usage: 'demo [--for SECONDS]',
    summary: 'Watch jobs come, run, fail and be retried while a worker is killed now and then.',
    load: () => import('./demo.js'),
  },
  {
    name: 'ring',
    usage: 'ring [OPTIONS] EXECUTABLE …',
    summary: 'Run any executable with the next item of a ring, under a lock. The same as w8y.',
    load: () => import('./ring.js'),
  },
];

import type { Engine } from '../../engine/engine.js';
import { checkName, checkOneOf } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import { RANGE_NAMES } from '../../store/history.js';
import type { FlowsView, JobsParameters, ViewName } from '../api.js';
import { deadView } from './dead.js';
import { findJobs } from './find.js';
import { FlowAttention } from './flow/flow-attention.js';
import { historyView } from './history.js';
import { jobView } from './job/job.js';
import { jobsView } from './job/jobs.js';
import { overview, queueView } from './overview.js';
import type { QueueBoard } from './queue-board.js';
import { schedulesView } from './schedules.js';
import { workersView } from './workers.js';

/** Reads a view; undefined if what it is about does not exist. */
export interface View {
  read: (parameters: Parameters) => Promise<object | undefined>;
  /** How often it is read again while somebody follows it, in milliseconds. */
  every: number;
}

/** The parameters of a view, from a URL. */
export type Parameters = Readonly<Record<string, string>>;

export type ViewTable = Partial<Record<ViewName, View>>;

const SECOND = 1_000;

/** Every view of jobs and queues; `flows` lists the flows beside them, if there can be any. */
export function engineViews(engine: Engine, board: QueueBoard, flows?: View): ViewTable {
  const trouble = flows && new FlowAttention(() => flows.read({}) as Promise<FlowsView>);
  const queueOf = ({ queue }: Parameters) => (queue === undefined ? undefined : checkName(queue, 'queue name'));
  const required = (parameters: Parameters, name: string) => checkName(parameters[name], name);
  return {
    overview: { every: SECOND, read: ({ search, after }) => overview(engine, board, { search, after }, trouble) },
    queue: { every: SECOND, read: (parameters) => queueView(engine, board, required(parameters, 'name')) },
    jobs: {
      every: SECOND,
      read: (parameters) => {
        required(parameters, 'queue');
        return jobsView(engine, parameters as unknown as JobsParameters);
      },
    },
    job: {
      every: SECOND,
      read: (parameters) => jobView(engine, required(parameters, 'queue'), required(parameters, 'id')),
    },
    find: {
      every: 60 * SECOND,
      read: (parameters) => findJobs(engine, board, required(parameters, 'id'), parameters.after),
    },
    dead: { every: 5 * SECOND, read: (parameters) => deadView(engine, board, queueOf(parameters)) },
    workers: { every: 2 * SECOND, read: (parameters) => workersView(engine, queueOf(parameters)) },
    schedules: { every: 5 * SECOND, read: (parameters) => schedulesView(engine, queueOf(parameters)) },
    history: {
      every: 5 * SECOND,
      read: (parameters) =>
        historyView(engine, queueOf(parameters), checkOneOf(parameters.range, 'range', RANGE_NAMES)),
    },
  };
}

/** The parameters of a request, each given once. */
export function parametersOf(query: URLSearchParams): Parameters {
  const found: Record<string, string> = Object.create(null);
  for (const [name, value] of query) {
    if (name in found) throw new CroreError('BAD_OPTION', `the parameter '${name.slice(0, 40)}' is given twice`);
    found[name] = value;
  }
  return found;
}

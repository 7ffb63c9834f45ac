import type { Experiment } from '../support/experiment.js';
import { CLUSTER_FAULTS } from './cluster.js';
import { INPUT_FAULTS } from './input.js';
import { POSTGRES_FAULTS } from './postgres.js';
import { REDIS_FAULTS } from './redis.js';
import { SERVER_FAULTS } from './server.js';
import { SQLITE_FAULTS } from './sqlite.js';
import { WORKERS } from './workers.js';

export const EXPERIMENTS: Experiment[] = [
  ...WORKERS,
  ...REDIS_FAULTS,
  ...CLUSTER_FAULTS,
  ...SQLITE_FAULTS,
  ...POSTGRES_FAULTS,
  ...INPUT_FAULTS,
  ...SERVER_FAULTS,
];

export { CroreError, ERRORS, type ErrorCode } from '../errors.js';
export type { GivenClient, WorqrOptions, WorqrRedisOptions } from './options.js';
export type { Process } from './tasks.js';
export { type DebugInfo, Worqr } from './worqr.js';

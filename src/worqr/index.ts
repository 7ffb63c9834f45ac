export { CroreError, ERRORS, type ErrorCode } from '../errors.js';
export type { GivenClient, WorqrOptions, WorqrRedisOptions } from './options.js';
export { type DebugInfo, type Process, Worqr } from './worqr.js';

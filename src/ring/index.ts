export { CroreError, type ErrorCode } from '../errors.js';
export { openRing, type Ring, type RingItem, type RingOptions } from './ring.js';

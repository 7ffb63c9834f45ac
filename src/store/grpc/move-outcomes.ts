import type { MoveOutcome } from '../store.js';

/** By their number in `crore.v1`, less one. */
export const MOVE_OUTCOMES: readonly MoveOutcome[] = ['moved', 'unknown', 'started', 'linked', 'taken'];

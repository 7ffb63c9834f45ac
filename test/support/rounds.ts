const count = Number(process.env.CRORE_FAULT_ROUNDS ?? 1);

/** Tests of faults run once in `npm test`, and again and again in `npm run faults`. */
export const ROUNDS = { repeats: count - 1 };

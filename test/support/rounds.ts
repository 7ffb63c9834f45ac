const count = Number(process.env.CRORE_FAULT_ROUNDS ?? 1);

/** Fault tests run once in `npm test`, and repeatedly in `npm run faults`. */
export const ROUNDS = { repeats: count - 1 };

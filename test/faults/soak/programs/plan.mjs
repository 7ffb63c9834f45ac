// What the job with a number is: producers, workers and the tally read it from the number alone.

/** One job in this many kills the process that runs it. */
const POISON_EVERY = 125_000;

export function kindOf(n) {
  if (n % POISON_EVERY === 777) return 'poison';
  const k = n % 1_000;
  if (k === 1) return 'failing';
  if (k === 2 || k === 502) return 'retried';
  if (k >= 3 && k <= 12) return 'delayed';
  if (k >= 20 && k <= 59) return 'grouped';
  if (k === 60) return 'batch';
  if (k >= 61 && k <= 70) return 'member';
  return k % 100 === 80 ? 'slow' : 'plain';
}

/** Whether the job has to be dead in the end; every other one has to be done. */
export function endsDead(n) {
  const kind = kindOf(n);
  return kind === 'failing' || kind === 'poison';
}

/** The options of `add`. Records stay until the queue of the round is obliterated, so that a repeated add is a duplicate. */
export function optionsOf(n) {
  const base = { id: String(n), keep: KEEP, keepDead: KEEP, attempts: 20, backoff: BACKOFF };
  switch (kindOf(n)) {
    case 'failing':
      return { ...base, attempts: 2 };
    case 'poison':
      return { ...base, attempts: 1_000 };
    case 'delayed':
      return { ...base, delay: 200 + (n % 7) * 200 };
    case 'grouped':
      return { ...base, group: `g${n % 10}` };
    default:
      return base;
  }
}

const KEEP = { for: '1d', count: 10_000_000 };
const BACKOFF = { kind: 'fixed', delay: 100 };

/** Repeats a call until the store answers. */
export async function insist(make) {
  for (;;) {
    try {
      return await make();
    } catch (error) {
      if (!/^STORE_/.test(error.code ?? '')) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

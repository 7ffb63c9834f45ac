import { flow, map, node, sh } from 'crore/flow';

/** Counts the primes below a million, in pieces that run beside each other in processes of their own. */
const pieces = node(() => Array.from({ length: 10 }, (_, i) => ({ from: i * 100_000, to: (i + 1) * 100_000 })));

const counts = map(pieces, { retries: 1 }, ({ from, to }) => {
  let count = 0;
  for (let n = Math.max(2, from); n < to; n++) if (isPrime(n)) count++;
  return count;
});

const total = node({ needs: { counts } }, ({ counts }) => counts.reduce((sum, count) => sum + count, 0));

const shown = sh('echo "$CRORE_RESULT_total primes"', { needs: { total } });

export default flow({ pieces, counts, total, shown });

function isPrime(n: number): boolean {
  for (let d = 2; d * d <= n; d++) if (n % d === 0) return false;
  return true;
}

// What a worker does, as numbers in a binary file: one write per batch, before the next step, so that nothing is lost with the process.
// A batch is 16 bytes (kind, count, time) and then four bytes for each number.
import { openSync, writeSync } from 'node:fs';

const [CLAIMED, RUN, ENDED] = [1, 2, 3];
const HEAD = 16;

export class Journal {
  #file;
  #ran = [];

  constructor(file) {
    this.#file = openSync(file, 'a', 0o600);
  }

  ran(n) {
    this.#ran.push(n);
  }

  write(kind, numbers) {
    if (numbers.length === 0) return;
    const batch = Buffer.allocUnsafe(HEAD + numbers.length * 4);
    batch.writeUInt32LE(kind, 0);
    batch.writeUInt32LE(numbers.length, 4);
    batch.writeDoubleLE(Date.now(), 8);
    numbers.forEach((n, i) => {
      batch.writeUInt32LE(n, HEAD + i * 4);
    });
    writeSync(this.#file, batch);
  }

  /** The same store, with claims, runs and accepted ends in this journal. */
  record(store) {
    const calls = {
      claim: async (session, n) => {
        const claim = await store.claim(session, n);
        this.write(
          CLAIMED,
          claim.entries.map(({ lease }) => Number(lease.id)),
        );
        return claim;
      },
      settle: async (queue, settlements) => {
        this.write(RUN, this.#ran.splice(0));
        const applied = await store.settle(queue, settlements);
        const ended = settlements.filter(({ outcome }, i) => applied[i] && /^(done|dead|cancelled)$/.test(outcome.to));
        this.write(
          ENDED,
          ended.map(({ lease }) => Number(lease.id)),
        );
        return applied;
      },
    };
    return new Proxy(store, {
      get(target, key) {
        if (Object.hasOwn(calls, key)) return calls[key];
        const value = Reflect.get(target, key, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }
}

// Writes what a process does to a file of its own: one write per line, so that nothing is lost with the process.
import { openSync, readdirSync, writeSync } from 'node:fs';
import { join } from 'node:path';

/** Refusals after which the call has certainly changed nothing. */
const REFUSED = new Set(['STORE_FULL', 'QUEUE_FULL', 'STORE_READONLY', 'STORE_BUSY', 'UNKNOWN_UPSTREAM', 'BAD_OPTION']);

export class Recorder {
  #file;
  #lines = 0;
  #calls = 0;

  constructor(dir, name) {
    this.name = name;
    this.#file = openSync(join(dir, `${name}.jsonl`), 'a', 0o600);
  }

  write(line) {
    this.#lines += 1;
    const at = Number(process.hrtime.bigint() / 1_000n) / 1_000;
    const whole = { process: this.name, n: this.#lines, at, wall: Date.now(), ...line };
    writeSync(this.#file, `${JSON.stringify(whole)}\n`);
  }

  /** Records a call and how it ends. */
  async call(verb, asked, make, answer) {
    this.#calls += 1;
    const call = this.#calls;
    this.write({ verb, phase: 'invoke', call, ...asked });
    try {
      const value = await make();
      this.write({ verb, phase: 'ok', call, ...answer(value) });
      return value;
    } catch (error) {
      const phase = REFUSED.has(error?.code) ? 'fail' : 'unknown';
      this.write({ verb, phase, call, code: error?.code, ...asked });
      throw error;
    }
  }

  /** Memory and descriptors, every so often. */
  sample(every) {
    const timer = setInterval(() => {
      const descriptors = readdirSync('/proc/self/fd').length;
      this.write({ verb: 'sample', phase: 'note', call: 0, rss: process.memoryUsage().rss, descriptors });
    }, every);
    timer.unref();
  }
}

/** The same store, with its calls recorded. */
export function recorded(store, recorder) {
  const nameOf = ({ id, token }) => ({ id: id ?? `task ${token}`, token });
  const calls = {
    add: (queue, jobs, limits) =>
      recorder.call(
        'add',
        { ids: jobs.map(({ id }) => id) },
        () => store.add(queue, jobs, limits),
        (outcomes) => ({
          ids: jobs.filter((_job, i) => outcomes[i].outcome === 'created').map(({ id }) => id),
          duplicates: jobs.filter((_job, i) => outcomes[i].outcome === 'duplicate').map(({ id }) => id),
        }),
      ),
    claim: (session, n) =>
      recorder.call(
        'claim',
        {},
        () => store.claim(session, n),
        ({ entries }) => ({
          entries: entries.map(({ lease, job }) => ({ ...nameOf(lease), attempt: job?.attempt ?? 1 })),
        }),
      ),
    settle: (queue, settlements) => {
      const asked = { settlements: settlements.map(({ lease, outcome }) => ({ ...nameOf(lease), to: outcome.to })) };
      return recorder.call(
        'settle',
        asked,
        () => store.settle(queue, settlements),
        (applied) => ({ ...asked, applied }),
      );
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

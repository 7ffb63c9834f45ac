let waiting: (() => void)[] = [];

/**
 * Calls back when all data that is readable by now has been read, from any stream. In each turn, the event loop polls
 * once for readable streams and reads them to the end; data that arrives after the poll is read in the next turn.
 * Callers of the same turn are called together.
 */
export function whenDrained(call: () => void): void {
  if (waiting.push(call) > 1) return;
  setImmediate(() => {
    const calls = waiting;
    waiting = [];
    setImmediate(() => {
      for (const one of calls) one();
    });
  });
}

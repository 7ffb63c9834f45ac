let waiting: (() => void)[] = [];

/**
 * Calls back when all has been read that was there to be read by now, from any stream. Each turn the event loop asks once who
 * has something to read, and reads that to its end; what came between the question and now, it hears of in its next turn.
 * Whoever waits from the same turn on is called together.
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

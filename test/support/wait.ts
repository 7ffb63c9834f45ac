/** Polls until `probe` returns something truthy, and returns that; on timeout, fails with `what`. */
export async function until<T>(
  what: string | (() => string),
  probe: () => T | Promise<T>,
  { within = 20_000, every = 10 }: { within?: number; every?: number } = {},
): Promise<T> {
  const deadline = performance.now() + within;
  for (;;) {
    const value = await probe();
    if (value) return value;
    if (performance.now() > deadline)
      throw new Error(`waited ${within} ms in vain: ${typeof what === 'string' ? what : what()}`);
    await new Promise((resolve) => setTimeout(resolve, every));
  }
}

/** Whether a process exists and is running (a zombie is not). */
export function isAlive(pid: number, read: (file: string) => string): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(read(`/proc/${pid}/status`));
  } catch {
    return false;
  }
}

/** A promise with its resolve and reject functions exposed. */
export function deferred<T = void>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: Error) => void;
} {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

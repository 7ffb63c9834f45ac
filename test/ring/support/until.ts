/** Waits for something to become true; fails with its name when it does not in time. */
export async function until(
  what: string,
  check: () => boolean | Promise<boolean>,
  { within = 15_000, every = 20 }: { within?: number; every?: number } = {},
): Promise<void> {
  const end = Date.now() + within;
  while (!(await check())) {
    if (Date.now() > end) throw new Error(`still not true after ${within} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, every));
  }
}

/** Whether a process is there and running (a zombie is neither). */
export function isAlive(pid: number, read: (file: string) => string): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(read(`/proc/${pid}/status`));
  } catch {
    return false;
  }
}

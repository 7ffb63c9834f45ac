/** Monotonic milliseconds: deadlines must not move when the system time is set. */
export function now(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}

/** A sleep that `wake` ends early; a `wake` while nothing sleeps ends the next sleep, so none is missed. */
export class Pause {
  private end: (() => void) | undefined;
  private woken = false;

  async sleep(ms: number): Promise<void> {
    if (!this.woken) await this.wait(ms);
    this.woken = false;
  }

  private wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.end?.(), ms);
      this.end = () => {
        this.end = undefined;
        clearTimeout(timer);
        resolve();
      };
    });
  }

  wake(): void {
    if (this.end) this.end();
    else this.woken = true;
  }
}

import type { Job } from '../../dist/job/job.js';

/** The part of the model for raw tasks: those that wait, next one first, and the locks of unique ones. */
export class Tasks {
  #all: Uint8Array[] = [];
  /** By the text of the task: the token of the lease that holds the lock, '' while the task waits. */
  readonly #locks = new Map<string, string>();

  get length(): number {
    return this.#all.length;
  }

  get texts(): string[] {
    return this.#all.map(textOf);
  }

  push(tasks: readonly Uint8Array[]): void {
    this.#all.push(...tasks);
  }

  pushUnique(task: Uint8Array): boolean {
    if (this.#locks.has(textOf(task))) return false;
    this.#locks.set(textOf(task), '');
    this.push([task]);
    return true;
  }

  take(n: number): Uint8Array[] {
    return this.#all.splice(0, n);
  }

  giveBack(task: Uint8Array): void {
    this.#all.unshift(task);
  }

  drop(text: string): number {
    const before = this.#all.length;
    this.#all = this.#all.filter((task) => textOf(task) !== text);
    if (this.#locks.get(text) === '') this.#locks.delete(text);
    return before - this.#all.length;
  }

  clear(): void {
    this.#all = [];
    for (const [text, token] of this.#locks) if (token === '') this.#locks.delete(text);
  }

  /** The first equal task that is leased holds the lock. */
  lock(task: Uint8Array, token: string): void {
    if (this.#locks.get(textOf(task)) === '') this.#locks.set(textOf(task), token);
  }

  unlock(task: Uint8Array, token: string, back: boolean): void {
    const text = textOf(task);
    if (this.#locks.get(text) !== token) return;
    if (back) this.#locks.set(text, '');
    else this.#locks.delete(text);
  }
}

/** The waiting jobs without a group, by priority. */
export class Lines<J extends Job> {
  readonly #lines = new Map<number, J[]>();

  get size(): number {
    return [...this.#lines.values()].reduce((sum, line) => sum + line.length, 0);
  }

  lengthOf(priority: number): number {
    return this.#lines.get(priority)?.length ?? 0;
  }

  enter(job: J, front: boolean): void {
    const line = this.#lines.get(job.priority) ?? [];
    this.#lines.set(job.priority, line);
    if (front) line.unshift(job);
    else line.push(job);
  }

  withdraw(job: J): void {
    const line = this.#lines.get(job.priority) ?? [];
    this.#lines.set(
      job.priority,
      line.filter((one) => one !== job),
    );
  }

  take(most: number, isWanted: (priority: number) => boolean): J[] {
    const priorities = [...this.#lines.keys()].filter(isWanted).sort((a, b) => b - a);
    const out: J[] = [];
    for (const priority of priorities) out.push(...this.#lines.get(priority)!.splice(0, most - out.length));
    return out;
  }
}

function textOf(task: Uint8Array): string {
  return Buffer.from(task).toString();
}

/** One view as a stream of events from the server, which survives lost connections. */
import { signal } from '@preact/signals';
import type { LiveProblem, ViewName, Views } from '../../api.js';
import { ApiFailure, get } from './api.js';
import { href } from './router.js';
import { serverNow, syncClock } from './time.js';

const LOST_MS = 2_000;
const LONGEST_RETRY_MS = 10_000;

/** Those that are on the screen. */
export const open = signal<readonly FollowedView<ViewName>[]>([]);

export class FollowedView<N extends ViewName> {
  readonly content = signal<Views[N]['content'] | undefined>(undefined);
  readonly problem = signal<LiveProblem | undefined>(undefined);
  readonly refusal = signal<ApiFailure | undefined>(undefined);
  used = 0;
  #source?: EventSource;
  #timer = 0;
  #retry = 500;

  constructor(
    readonly name: N,
    readonly parameters: Views[N]['parameters'],
  ) {}

  /** Follows until the returned function is called. */
  use(): () => void {
    this.used += 1;
    if (this.used === 1) this.#enter();
    return () => {
      this.used -= 1;
      if (this.used === 0) this.#leave();
    };
  }

  /** A tab that was opened in the background reads once: browsers allow only a few streams per server. */
  show(): void {
    if (this.#source) return;
    if (document.hidden) void this.#read();
    else this.#connect();
  }

  hide(): void {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = undefined;
  }

  #enter(): void {
    open.value = [...open.value, this as unknown as FollowedView<ViewName>];
    this.show();
  }

  #leave(): void {
    this.hide();
    this.problem.value = undefined;
    open.value = open.value.filter((view) => (view as unknown) !== this);
  }

  #connect(): void {
    clearTimeout(this.#timer);
    const source = new EventSource(href('api/live', { view: this.name, ...this.parameters }));
    this.#source = source;
    source.addEventListener('content', ({ data }) => this.#onContent(JSON.parse(data)));
    source.addEventListener('problem', ({ data }) => this.#onProblem(JSON.parse(data)));
    source.addEventListener('open', () => clearTimeout(this.#timer));
    source.addEventListener('error', () => this.#onError(source));
  }

  /** Null: what it is about does not exist, or no longer does. */
  #onContent(content: Views[N]['content'] | null): void {
    if (content === null) {
      this.#refuse(new ApiFailure(404, `There is no such ${this.name}`));
    } else {
      syncClock(content.now, true);
      this.#receive(content);
    }
  }

  /** A plain read tells whether the store is in trouble, or the address of the page. */
  #onProblem(problem: LiveProblem): void {
    this.#stumble(problem);
    void this.#read();
  }

  #receive(content: Views[N]['content']): void {
    clearTimeout(this.#timer);
    this.#retry = 500;
    this.content.value = content;
    this.problem.value = undefined;
    this.refusal.value = undefined;
  }

  #stumble(problem: LiveProblem): void {
    clearTimeout(this.#timer);
    this.problem.value = problem;
  }

  /** The browser connects again by itself, unless the server answered with an error: then a plain read tells what it is. */
  #onError(source: EventSource): void {
    if (source !== this.#source) return;
    if (source.readyState === EventSource.CLOSED) {
      this.hide();
      void this.#readAndRetry();
    } else if (!this.problem.value) {
      const since = serverNow();
      clearTimeout(this.#timer);
      this.#timer = window.setTimeout(() => this.#stumble({ text: 'The server has not answered', since }), LOST_MS);
    }
  }

  async #readAndRetry(): Promise<void> {
    await this.#read();
    const wait = this.refusal.value ? LONGEST_RETRY_MS : this.#retry;
    this.#retry = Math.min(wait * 2, LONGEST_RETRY_MS);
    if (this.used > 0 && !document.hidden) this.#timer = window.setTimeout(() => this.show(), wait);
  }

  async #read(): Promise<void> {
    try {
      const content = await get(this.name, this.parameters);
      if (this.used > 0) this.#receive(content);
    } catch (error) {
      if (this.used > 0) this.#fail(error);
    }
  }

  #refuse(failure: ApiFailure): void {
    this.problem.value = undefined;
    this.refusal.value = failure;
  }

  #fail(error: unknown): void {
    const failure = error instanceof ApiFailure ? error : new ApiFailure(0, String(error));
    if (failure.status >= 400 && failure.status < 500) this.#refuse(failure);
    else this.problem.value ??= { text: failure.message, since: serverNow() };
  }
}

/** Views that follow what happens: each is a stream of events from the server, shared by all that look at it. */
import { computed, signal } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { LiveProblem, ViewName, Views } from '../../api.js';
import { ApiFailure, get } from './api.js';
import { href } from './router.js';
import { serverNow, syncClock } from './time.js';

export interface ViewState<Content> {
  /** The last known content, also while there is a problem. */
  content?: Content;
  /** The store or the server does not answer; the banner at the top says so too. */
  problem?: LiveProblem;
  /** The server refuses: there is no such job, say. */
  refusal?: ApiFailure;
  /** Nothing is known yet. */
  loading: boolean;
  /** The content is that of the previous parameters, until the new one arrives. */
  stale: boolean;
}

const HIDDEN_MS = 60_000;
const LOST_MS = 2_000;
const LONGEST_RETRY_MS = 10_000;
/** Contents that are kept for the button Back. */
const MOST_KEPT = 30;

const views = new Map<string, FollowedView<ViewName>>();
const open = signal<readonly FollowedView<ViewName>[]>([]);

/** The oldest problem of everything that is on the screen. */
export const trouble = computed<LiveProblem | undefined>(() =>
  open.value
    .flatMap((view) => view.problem.value ?? [])
    .sort((a, b) => a.since - b.since)
    .at(0),
);

/** Follows a view while the component is on the screen. */
export function useView<N extends ViewName>(
  name: N,
  parameters: Views[N]['parameters'],
): ViewState<Views[N]['content']> {
  const key = href(name, parameters);
  const view = useMemo(() => viewOf(key, name, parameters), [key]);
  useEffect(() => view.use(), [view]);
  const last = useRef<Views[N]['content']>(undefined);
  const content = view.content.value;
  if (content) last.current = content;
  return {
    content: content ?? last.current,
    problem: view.problem.value,
    refusal: view.refusal.value,
    loading: !content && !last.current && !view.refusal.value,
    stale: !content && last.current !== undefined,
  };
}

function viewOf<N extends ViewName>(key: string, name: N, parameters: Views[N]['parameters']): FollowedView<N> {
  let view = views.get(key) as FollowedView<N> | undefined;
  view ??= new FollowedView(name, parameters);
  views.delete(key);
  views.set(key, view as unknown as FollowedView<ViewName>);
  for (const [old, other] of views) if (views.size > MOST_KEPT && !other.used) views.delete(old);
  return view;
}

class FollowedView<N extends ViewName> {
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
    if (content === null) return this.#refuse(new ApiFailure(404, `There is no such ${this.name}`));
    syncClock(content.now, true);
    this.#receive(content);
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
      this.#timer = window.setTimeout(() => this.#stumble({ text: 'The server does not answer', since }), LOST_MS);
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

let hiding = 0;
document.addEventListener('visibilitychange', () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = window.setTimeout(() => forEachOpen((view) => view.hide()), HIDDEN_MS);
  else forEachOpen((view) => view.show());
});

function forEachOpen(does: (view: FollowedView<ViewName>) => void): void {
  for (const view of open.value) does(view);
}

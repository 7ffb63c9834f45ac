/** Views that follow what happens: each is a stream of events from the server, shared by all that look at it. */
import { computed } from '@preact/signals';
import { useEffect, useMemo, useRef } from 'preact/hooks';
import type { LiveProblem, ViewName, Views } from '../../api.js';
import type { ApiFailure } from './api.js';
import { FollowedView, open } from './followed-view.js';
import { href } from './router.js';

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
/** Contents that are kept for the button Back. */
const MOST_KEPT = 30;

const views = new Map<string, FollowedView<ViewName>>();

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

let hiding = 0;
document.addEventListener('visibilitychange', () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = window.setTimeout(() => forEachOpen((view) => view.hide()), HIDDEN_MS);
  else forEachOpen((view) => view.show());
});

function forEachOpen(does: (view: FollowedView<ViewName>) => void): void {
  for (const view of open.value) does(view);
}

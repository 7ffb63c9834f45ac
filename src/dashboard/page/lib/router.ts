/** Where the page is: the path below `<base>` and the query, kept in the browser's history. */
import { signal } from '@preact/signals';
import { type AnchorHTMLAttributes, h } from 'preact';

export interface Location {
  /** Relative to the base, without a leading slash: `queue`, or empty for the overview. */
  path: string;
  query: URLSearchParams;
}

export const location = signal<Location>(read());
/** Where each entry of the history was scrolled to, by its number. */
const scrolls = new Map<number, number>();
let entry = entryOf(history.state);

/** An address below the base; parameters that are undefined or empty are left out. */
export function href(path: string, parameters: object = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== '') query.set(name, String(value));
  }
  const text = query.toString();
  return `${path === '' ? './' : path}${text === '' ? '' : `?${text}`}`;
}

/** The same page with other parameters. */
export function hrefWith(changes: object): string {
  return href(location.value.path, { ...Object.fromEntries(location.value.query), ...changes });
}

export function go(to: string): void {
  scrolls.set(entry, scrollY);
  entry += 1;
  const before = location.value.path;
  history.pushState({ entry }, '', new URL(to, document.baseURI));
  location.value = read();
  if (location.value.path !== before || !to.includes('?')) startAtTop();
}

export function replace(to: string): void {
  history.replaceState({ entry }, '', new URL(to, document.baseURI));
  location.value = read();
}

/** A link within the page. Any other `<a>` with an address below the base works as well: clicks are handled in one place. */
export function Link(props: AnchorHTMLAttributes & { href: string }) {
  return h('a', props);
}

/** Starts to handle clicks on links, and the buttons Back and Forward. */
export function startRouter(): void {
  history.scrollRestoration = 'manual';
  document.addEventListener('click', onClick);
  addEventListener('popstate', onPopState);
}

function onClick(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = (event.target as Element | null)?.closest('a');
  if (!link?.href || link.target !== '' || link.hasAttribute('download') || !isBelowBase(link.href)) return;
  event.preventDefault();
  if (link.href === window.location.href) startAtTop();
  else go(link.href);
}

function isBelowBase(address: string): boolean {
  const url = new URL(address);
  const base = new URL(document.baseURI);
  return url.origin === base.origin && url.pathname.startsWith(base.pathname);
}

function onPopState(event: PopStateEvent): void {
  scrolls.set(entry, scrollY);
  entry = entryOf(event.state);
  location.value = read();
  restoreScroll(scrolls.get(entry) ?? 0, 20);
}

/** The content may need a few frames to be as long as it was. */
function restoreScroll(top: number, frames: number): void {
  requestAnimationFrame(() => {
    scrollTo(0, top);
    if (Math.abs(scrollY - top) > 1 && frames > 0) restoreScroll(top, frames - 1);
  });
}

/** A new page is read from its beginning, also by screen readers. */
function startAtTop(): void {
  scrollTo(0, 0);
  document.getElementById('main')?.focus({ preventScroll: true });
}

function read(): Location {
  const base = new URL(document.baseURI).pathname;
  const { pathname, search } = window.location;
  return { path: pathname.startsWith(base) ? pathname.slice(base.length) : '', query: new URLSearchParams(search) };
}

function entryOf(state: unknown): number {
  return (state as { entry?: number } | null)?.entry ?? 0;
}

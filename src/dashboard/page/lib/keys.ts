/** Keys that work anywhere on the page, except while somebody types. */
import { signal } from '@preact/signals';
import { go, href } from './router.js';

export const helpOpen = signal(false);

/** Pages by the key that follows `g`. */
export const PAGES: Record<string, { path: string; title: string }> = {
  o: { path: '', title: 'Overview' },
  d: { path: 'dead', title: 'Dead' },
  w: { path: 'workers', title: 'Workers' },
  s: { path: 'schedules', title: 'Schedules' },
  f: { path: 'flows', title: 'Flows' },
  r: { path: 'rings', title: 'Rings' },
};
const CHORD_MS = 1_500;
let chordUntil = 0;

export function startKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    if (isTyping(event.target)) leaveField(event);
    else if (press(event.key)) event.preventDefault();
  });
}

/** True if the key meant something. */
function press(key: string): boolean {
  const chord = performance.now() < chordUntil;
  const page = chord ? PAGES[key] : undefined;
  chordUntil = key === 'g' ? performance.now() + CHORD_MS : 0;
  if (page) go(href(page.path));
  else if (chord && key === 'j') return findJob();
  else if (key === '/') return focusSearch() || findJob();
  else if (key === 'j' || key === 'k') moveRow(key === 'j' ? 1 : -1);
  else if (key === '?') helpOpen.value = true;
  else return false;
  return true;
}

function isTyping(target: EventTarget | null): target is HTMLElement {
  return target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]');
}

function leaveField(event: KeyboardEvent): void {
  if (event.key === 'Escape') (event.target as HTMLElement).blur();
}

function focusSearch(): boolean {
  const search = document.querySelector<HTMLInputElement>('[data-search]');
  search?.closest('details')?.setAttribute('open', '');
  search?.focus();
  search?.select();
  return search !== null;
}

/** Pages without a search of their own lead to the one for jobs. */
export function findJob(): boolean {
  go(href('find'));
  requestAnimationFrame(() => requestAnimationFrame(focusSearch));
  return true;
}

/** Rows are links: Enter opens the one that has the focus. */
function moveRow(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>('main [data-row]')];
  const here = rows.indexOf(document.activeElement as HTMLElement);
  const next = here < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, here + step));
  rows[next]?.focus();
  rows[next]?.scrollIntoView({ block: 'nearest' });
}

import { logOut, session } from '../lib/api.js';
import { useDeadCount } from '../lib/dead-count.js';
import { compact, count } from '../lib/format.js';
import { useCurrentInView } from '../lib/in-view.js';
import { findJob, helpOpen, PAGES } from '../lib/keys.js';
import { href, location } from '../lib/router.js';
import { choose, THEMES, type Theme, theme } from '../lib/theme.js';
import { sayFailure } from '../lib/toast.js';

/** Pages that belong to an entry of the navigation. */
const PARENTS: Record<string, string> = { queue: '', job: '', flow: 'flows', ring: 'rings' };

export function Nav() {
  const { path } = location.value;
  const current = PARENTS[path] ?? path;
  const dead = useDeadCount();
  const bar = useCurrentInView<HTMLElement>(current);
  return (
    <header class="top">
      <a class="skip" href={href('')} onClick={skip}>
        Skip to the content
      </a>
      <a class="logo" href={href('')} aria-label="Crore: overview">
        cr<span aria-hidden="true">o</span>re
      </a>
      <nav class="nav" ref={bar} aria-label="Pages">
        {Object.values(PAGES).map((page) => (
          <a key={page.path} href={href(page.path)} aria-current={page.path === current ? 'page' : undefined}>
            {page.title}
            {page.path === 'dead' && <DeadCount dead={dead} />}
          </a>
        ))}
      </nav>
      <Tools />
    </header>
  );
}

/** With `<base>`, a link to `#main` would lead to another page. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById('main')?.focus();
}

function DeadCount({ dead = 0 }: { dead?: number }) {
  if (dead === 0) return null;
  return (
    <span class="nav-count" title={`${count(dead)} dead jobs`}>
      {compact(dead)}
    </span>
  );
}

function Tools() {
  return (
    <div class="tools">
      {session.value?.access === 'read' && <span class="badge tone-plain">read only</span>}
      <button type="button" class="tool" aria-label="Find a job by its id" title="Find a job (g j)" onClick={findJob}>
        <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
          <path d="M10.5 10.5 L15 15 M12 6.5 a5.5 5.5 0 1 1 -11 0 a5.5 5.5 0 1 1 11 0" />
        </svg>
      </button>
      <ThemeButton />
      <button type="button" class="tool" aria-label="Keys and help" title="Keys (?)" onClick={openHelp}>
        ?
      </button>
      {session.value?.loggedIn && (
        <button type="button" class="tool" onClick={() => logOut().catch((error) => sayFailure(error.message))}>
          Log out
        </button>
      )}
    </div>
  );
}

const SIGNS: Record<Theme, string> = { system: '◐', light: '☀', dark: '☾' };

function ThemeButton() {
  const next = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  return (
    <button
      type="button"
      class="tool"
      aria-label={`Colours: ${theme.value}. Change to ${next}`}
      title={`Colours: ${theme.value}`}
      onClick={() => choose(next)}
    >
      {SIGNS[theme.value]}
    </button>
  );
}

function openHelp(): void {
  helpOpen.value = true;
}

/** Times and durations in words. One shared clock ticks every second, corrected by the server's. */
import { signal } from '@preact/signals';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** How far the server's clock is ahead of this one. */
let ahead = 0;
/** The server's time, once a second. */
export const now = signal(Date.now());

export function serverNow(): number {
  return Date.now() + ahead;
}

/**
 * Takes over the server's clock; small differences are the time that the answer took. A message that may have been kept for a
 * while (`kept`) can only show that this clock is slow.
 */
export function syncClock(server: number, kept = false): void {
  const difference = server - serverNow();
  if (Math.abs(difference) < 250 || (kept && difference < 0)) return;
  ahead = server - Date.now();
  now.value = serverNow();
}

setInterval(() => {
  if (!document.hidden) now.value = serverNow();
}, SECOND);
document.addEventListener('visibilitychange', () => {
  now.value = serverNow();
});

/** A point in time, relative to now: `3 min ago`, `in 5 s`. */
export function Ago({ at }: { at: number }) {
  return (
    <time class="time" dateTime={isoOf(at)} title={exact(at)}>
      {relative(at - now.value)}
    </time>
  );
}

/** How long something has been going on. */
export function Since({ at }: { at: number }) {
  return (
    <time class="time" dateTime={isoOf(at)} title={`since ${exact(at)}`}>
      {elapsed(Math.max(0, now.value - at))}
    </time>
  );
}

/** A point in time as the clock shows it. */
export function At({ at }: { at: number }) {
  return (
    <time class="time" dateTime={isoOf(at)} title={exact(at)}>
      {clock(at)}
    </time>
  );
}

export function relative(ms: number): string {
  if (Math.abs(ms) < SECOND) return 'now';
  return ms < 0 ? `${rough(-ms)} ago` : `in ${rough(ms)}`;
}

/** In the largest unit alone: `3 min`. */
export function rough(ms: number): string {
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} d`;
}

/** In two units, for durations that somebody compares: `250 ms`, `1.5 s`, `3 min 20 s`. */
export function duration(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1).replace(/\.0$/, '')} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return two(ms, MINUTE, 'min', SECOND, 's');
  if (ms < DAY) return two(ms, HOUR, 'h', MINUTE, 'min');
  return two(ms, DAY, 'd', HOUR, 'h');
}

/** For what goes on: it ticks once a second, so it shows nothing smaller. */
function elapsed(ms: number): string {
  return ms < MINUTE ? rough(ms) : duration(ms);
}

function two(ms: number, big: number, bigName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % big) / small);
  return `${Math.floor(ms / big)} ${bigName}${rest === 0 ? '' : ` ${rest} ${smallName}`}`;
}

/** Today's times without the date. */
export function clock(at: number): string {
  const time = new Date(at);
  const today = time.toDateString() === new Date(serverNow()).toDateString();
  return today ? hours.format(time) : `${days.format(time)} ${hours.format(time)}`;
}

/** The local time with its zone, and the same in UTC. */
export function exact(at: number): string {
  const iso = isoOf(at);
  return iso === undefined ? String(at) : `${full.format(new Date(at))} (${iso})`;
}

const hours = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const days = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });
const full = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' });

/** Undefined for what is beyond the times that a Date can be. */
function isoOf(at: number): string | undefined {
  return Math.abs(at) <= 8.64e15 ? new Date(at).toISOString() : undefined;
}

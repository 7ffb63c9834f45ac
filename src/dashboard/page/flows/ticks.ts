/** Round times for an axis. */
const [SECOND, MINUTE, HOUR, DAY] = [1_000, 60_000, 3_600_000, 86_400_000];
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
  ...[1, 2, 7, 30, 90, 365].map((n) => n * DAY),
];
const MOST = 100;

export interface Tick {
  at: number;
  text: string;
}

/** Ticks between two times, at least `apart` milliseconds from each other, in local time. */
export function ticksOf(from: number, until: number, apart: number): Tick[] {
  const step = STEPS.find((one) => one >= apart) ?? STEPS.at(-1)!;
  const zone = new Date(from).getTimezoneOffset() * MINUTE;
  const ticks: Tick[] = [];
  for (let at = Math.ceil((from - zone) / step) * step + zone; at <= until && ticks.length < MOST; at += step)
    ticks.push({ at, text: textOf(at, step) });
  return ticks;
}

function textOf(at: number, step: number): string {
  const time = new Date(at);
  if (step >= DAY) return days.format(time);
  const text = (step >= MINUTE ? minutes : seconds).format(time);
  return step >= SECOND ? text : `${text}.${String(time.getMilliseconds()).padStart(3, '0')}`;
}

const days = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const minutes = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const seconds = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

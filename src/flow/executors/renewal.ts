import { CroreError } from '../../errors.js';

/** When a fresh worker replaces this one; Infinity means never. */
export interface Renewal {
  tasks: number;
  seconds: number;
  /** Resident memory in megabytes. */
  rss: number;
}

export const NEVER: Renewal = Object.freeze({
  tasks: Number.POSITIVE_INFINITY,
  seconds: Number.POSITIVE_INFINITY,
  rss: Number.POSITIVE_INFINITY,
});

/** Parses `tasks=N,seconds=N,rss=MB`. */
export function parseRenewal(text: string): Renewal {
  const renewal = { ...NEVER };
  for (const part of text.split(',')) {
    const match = /^(tasks|seconds|rss)=(\d+(?:\.\d+)?)$/.exec(part.trim());
    if (!match || Number(match[2]) <= 0)
      throw new CroreError('BAD_OPTION', `--renew: '${part}' is not one of tasks=N, seconds=N, rss=MB`);
    renewal[match[1] as keyof Renewal] = Number(match[2]);
  }
  return renewal;
}

export function renewalText({ tasks, seconds, rss }: Renewal): string {
  const parts = Object.entries({ tasks, seconds, rss }).filter(([, limit]) => Number.isFinite(limit));
  return parts.map(([name, limit]) => `${name}=${limit}`).join(',');
}

/** Numbers in words. */
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** `12,345`. */
export function count(value: number): string {
  return whole.format(value);
}

/** `12.3K`, where there is little room. */
export function compact(value: number): string {
  return value < 10_000 ? whole.format(value) : short.format(value);
}

/** `1 job`, `2 jobs`. */
export function plural(value: number, noun: string, nouns = `${noun}s`): string {
  return `${count(value)} ${value === 1 ? noun : nouns}`;
}

/** Jobs per second, or per minute where that says more. */
export function rate(perSecond: number): string {
  if (perSecond === 0) return '0';
  if (perSecond >= 10) return `${compact(Math.round(perSecond))}/s`;
  if (perSecond >= 1) return `${perSecond.toFixed(1)}/s`;
  return `${count(Math.max(1, Math.round(perSecond * 60)))}/min`;
}

export function bytes(size: number): string {
  if (size < 1_024) return plural(size, 'byte');
  if (size < 1_024 * 1_024) return `${(size / 1_024).toFixed(1)} KB`;
  return `${(size / 1_024 / 1_024).toFixed(1)} MB`;
}

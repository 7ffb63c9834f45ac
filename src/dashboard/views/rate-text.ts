import type { Rate } from '../../store/store.js';

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1_000, 's'],
] as const;

/** Such as `100 per 10 min`. */
export function rateText({ count, per }: Rate): string {
  const [size, unit] = UNITS.find(([ms]) => per % ms === 0) ?? [1, 'ms'];
  return `${count} per ${per === size ? '' : `${per / size} `}${unit}`;
}

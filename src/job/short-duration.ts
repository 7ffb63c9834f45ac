const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const;

/** A duration as people write it, in the largest unit that fits: `10m`. */
export function shortDuration(ms: number): string {
  const [unit, size] = UNITS.find(([, one]) => ms % one === 0) ?? ['ms', 1];
  return `${ms / size}${unit}`;
}

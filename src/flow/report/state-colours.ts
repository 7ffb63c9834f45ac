/** Fill and border colours of the states. */
export const COLOURS: Record<string, readonly [string, string]> = {
  blocked: ['#f4f4f5', '#a1a1aa'],
  ready: ['#e0f2fe', '#0284c7'],
  running: ['#fef9c3', '#ca8a04'],
  done: ['#dcfce7', '#16a34a'],
  failed: ['#fee2e2', '#dc2626'],
  skipped: ['#ede9fe', '#7c3aed'],
  cancelled: ['#e4e4e7', '#52525b'],
};

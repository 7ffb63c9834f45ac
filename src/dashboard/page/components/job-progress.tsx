/** How far a job says it is: a bar if it is a number that can be one, else its text. */
export function JobProgress({ progress }: { progress: unknown }) {
  const part = partOf(progress);
  if (part === undefined) return progress === undefined ? null : <span class="name mono">{textOf(progress)}</span>;
  const percent = Math.round(part * 100);
  return (
    <span class="job-progress">
      <span
        class="progress"
        role="progressbar"
        aria-label="Progress"
        aria-valuenow={percent}
        aria-valuemin={0}
        aria-valuemax={100}
      >
        <span class="bar" style={{ width: `${percent}%` }} />
      </span>
      <span class="percent">{percent}%</span>
    </span>
  );
}

/** Between 0 and 1. A whole 1 is taken for all of it: nobody reports one percent this way. */
function partOf(progress: unknown): number | undefined {
  if (typeof progress === 'object' && progress !== null && 'percent' in progress) {
    const { percent } = progress;
    return typeof percent === 'number' ? clamp(percent / 100) : undefined;
  }
  if (typeof progress !== 'number' || progress < 0 || progress > 100) return undefined;
  return clamp(progress <= 1 ? progress : progress / 100);
}

function clamp(part: number): number {
  return Math.min(1, Math.max(0, part));
}

function textOf(progress: unknown): string {
  return typeof progress === 'string' ? progress : JSON.stringify(progress);
}

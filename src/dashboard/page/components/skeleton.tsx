/** Grey lines of the height of what is being loaded, so that nothing jumps when it comes. */
export function Skeleton({ rows = 5 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <div key={row} class="skeleton-row" />
      ))}
    </div>
  );
}

import { hrefWith, location } from '../lib/router.js';

/** Links to the first and the next page; Back goes to the previous one. */
export function Pager({ parameter, next }: { parameter: string; next?: string }) {
  const first = !location.value.query.has(parameter);
  if (first && next === undefined) return null;
  return (
    <nav class="pager" aria-label="More">
      {!first && (
        <>
          <button type="button" class="button small" onClick={() => history.back()}>
            Previous
          </button>
          <a class="button small" href={hrefWith({ [parameter]: undefined })}>
            First
          </a>
        </>
      )}
      {next !== undefined && (
        <a class="button small" href={hrefWith({ [parameter]: next })}>
          Next
        </a>
      )}
    </nav>
  );
}

import { trouble } from '../lib/live.js';
import { clock, exact } from '../lib/time.js';

/** Says that what is on the screen is old, and since when. It lies over the page, so that nothing moves. */
export function Banner() {
  const problem = trouble.value;
  return (
    <div class="banner-place" role="alert">
      {problem && (
        <p class="banner">
          <strong>{sentence(problem.text)}</strong> since{' '}
          <time dateTime={new Date(problem.since).toISOString()} title={exact(problem.since)}>
            {clock(problem.since)}
          </time>
          ; showing what was known then. Trying again …
        </p>
      )}
    </div>
  );
}

function sentence(text: string): string {
  const bare = text.replace(/[.\s]+$/, '');
  return /^The (store|server) /.test(bare) ? bare : `The store has not answered (${bare})`;
}

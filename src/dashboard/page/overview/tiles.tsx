import type { OverviewView } from '../../api.js';
import { MEANINGS, STATES } from '../components/badge.js';
import { compact, count, plural } from '../lib/format.js';

/** The sums over all queues. */
export function Tiles({ content }: { content: OverviewView }) {
  const partial = content.counted < content.total;
  return (
    <section class="section" aria-label="Totals">
      <dl class="tiles">
        {STATES.map((state) => (
          <div key={state} class={`tile card tile-${state}`}>
            <dt title={MEANINGS[state]}>{state}</dt>
            <dd class={content.counts[state] ? '' : 'zero'} title={count(content.counts[state])}>
              {compact(content.counts[state])}
            </dd>
          </div>
        ))}
      </dl>
      {partial && <p class="muted">Sums over the first {plural(content.counted, 'queue')} only.</p>}
    </section>
  );
}

import type { State } from '../../../job/job.js';
import type { JobFilter } from '../../api.js';
import { STATES } from '../components/badge.js';
import { FilterField, TimeField } from '../components/filter-field.js';
import { href, location } from '../lib/router.js';

const TEXTS = ['id', 'text', 'group', 'after', 'before'] as const;

/** The filter that the address describes; undefined if neither it nor anything else says in which state. */
export function filterOf(query: URLSearchParams, otherwise?: State): JobFilter | undefined {
  const state = STATES.find((one) => one === query.get('state')) ?? otherwise;
  if (state === undefined) return undefined;
  const filter: JobFilter = { state };
  for (const name of TEXTS) {
    const value = query.get(name);
    if (value !== null && value !== '') filter[name] = value;
  }
  return filter;
}

export function isFiltered(filter: JobFilter): boolean {
  return TEXTS.some((name) => filter[name] !== undefined);
}

export function FilterBar() {
  const { query } = location.value;
  const active = TEXTS.filter((name) => query.has(name));
  const clear = href('queue', { name: query.get('name') ?? '', state: query.get('state') ?? '' });
  return (
    <details class="filter-bar" open={active.length > 0 || matchMedia('(min-width: 720px)').matches}>
      <summary>Filter{active.length > 0 ? ` (${active.length})` : ''}</summary>
      <search class="filters">
        <FilterField parameter="text" resets="cursor" label="Contains" placeholder="payload, error, header" main />
        <FilterField parameter="id" resets="cursor" label="Id begins with" />
        <FilterField parameter="group" resets="cursor" label="Group" />
        <TimeField parameter="after" resets="cursor" label="Added from" />
        <TimeField parameter="before" resets="cursor" label="Added before" />
        {active.length > 0 && (
          <a class="button" href={clear}>
            Clear
          </a>
        )}
      </search>
    </details>
  );
}

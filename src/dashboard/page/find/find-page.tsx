import { FilterField } from '../components/filter-field.js';
import { Page } from '../frame/page.js';
import { location } from '../lib/router.js';
import { FoundJobs } from './found-jobs.js';

/** Looks for a job by its id, wherever it is. */
export function FindPage() {
  const id = location.value.query.get('job') ?? '';
  return (
    <Page title="Find a job">
      <div class="filters">
        <FilterField parameter="job" resets="after" label="Id of the job" placeholder="The whole id" main />
      </div>
      {id !== '' && <FoundJobs key={id} id={id} />}
    </Page>
  );
}

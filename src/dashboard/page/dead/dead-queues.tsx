import type { DeadView } from '../../api.js';
import { Name } from '../components/name.js';
import { ACTIONS, Table } from '../components/table.js';
import { Section } from '../frame/page.js';
import { mayAct } from '../lib/api.js';
import { startBulk } from '../lib/bulk.js';
import { count } from '../lib/format.js';
import { href } from '../lib/router.js';
import { bulkVerbsFor, type BulkVerb as Verb } from '../lib/verbs.js';

type Row = DeadView['queues'][number];

/** Dead jobs by queue, with what can be done to all of one. */
export function DeadQueues({ queues }: { queues: readonly Row[] }) {
  return (
    <Section title="By queue">
      <Table
        label="Dead jobs by queue"
        class="cards"
        heads={[
          ['Queue', 'wide'],
          ['Dead', 'figure'],
          ['Dropped', 'figure', 'Dead jobs that were dropped because there were too many of them'],
          mayAct() && ACTIONS,
        ]}
      >
        {queues.map((queue) => (
          <QueueOfDead key={queue.name} queue={queue} />
        ))}
      </Table>
    </Section>
  );
}

function QueueOfDead({ queue: { name, dead, dropped } }: { queue: Row }) {
  return (
    <tr>
      <th scope="row" class="wide card-title">
        <a class="name-link" href={href('queue', { name, state: 'dead' })} data-row="">
          <Name text={name} />
        </a>
      </th>
      <td class="figure" data-label="Dead">
        {count(dead)}
      </td>
      <td class={dropped > 0 ? 'figure bad' : 'figure zero'} data-label="Dropped">
        {count(dropped)}
      </td>
      {mayAct() && (
        <td class="actions">
          <span class="buttons tight">
            {bulkVerbsFor('dead').map((verb) => (
              <button
                key={verb.action}
                type="button"
                class={`button small ${verb.danger ? 'danger' : ''}`}
                aria-label={`${verb.label} all dead jobs of ${name}`}
                disabled={dead === 0}
                onClick={() => void start(verb, name, dead)}
              >
                {verb.label} all
              </button>
            ))}
          </span>
        </td>
      )}
    </tr>
  );
}

function start(verb: Verb, queue: string, known: number): Promise<void> {
  return startBulk({
    action: { action: verb.action, queue, filter: { state: 'dead' } },
    verb: verb.label,
    past: verb.past,
    jobs: (jobs) => `dead ${jobs === 1 ? 'job' : 'jobs'} of “${queue}”`,
    note: verb.note,
    danger: verb.danger,
    known,
  });
}

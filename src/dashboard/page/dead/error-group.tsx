import type { DeadGroup } from '../../api.js';
import { CopyButton } from '../components/copy.js';
import { JobLink, QueueLink } from '../components/name.js';
import { Scroll } from '../components/scroll.js';
import { mayAct } from '../lib/api.js';
import { startBulk } from '../lib/bulk.js';
import { count } from '../lib/format.js';
import { Ago } from '../lib/time.js';
import { type Verb, verbsFor } from '../lib/verbs.js';

/** How many queues are named before the rest is only counted. */
const MOST_QUEUES = 5;

/** Dead jobs whose errors are alike. */
export function ErrorGroup({ group, queue }: { group: DeadGroup; queue?: string }) {
  return (
    <li class="group card">
      <div class="group-head">
        <span class="group-count" title={`${count(group.count)} jobs`}>
          {count(group.count)}
        </span>
        <p class="group-pattern mono" title={group.pattern}>
          <bdi>{group.pattern === '' ? '(no error text)' : group.pattern}</bdi>
        </p>
        {mayAct() && <GroupActions group={group} queue={queue} />}
      </div>
      <div class="group-facts muted">
        <span>
          last <Ago at={group.lastAt} />, first <Ago at={group.firstAt} />
        </span>
        <span class="fact-line">
          newest <JobLink queue={group.newest.queue} id={group.newest.id} row />
        </span>
        <QueuesOf group={group} />
      </div>
      <details class="group-error">
        <summary>Whole error of the newest</summary>
        <div class="content-box">
          <div class="content-head">
            <CopyButton text={group.error} />
          </div>
          <Scroll class="content wrap" label={`Error of ${group.newest.id}`}>
            <pre>{group.error}</pre>
          </Scroll>
        </div>
      </details>
    </li>
  );
}

function QueuesOf({ group: { queues } }: { group: DeadGroup }) {
  return (
    <ul class="fact-queues">
      {queues.slice(0, MOST_QUEUES).map(({ name, count: jobs }) => (
        <li key={name}>
          <QueueLink name={name} /> {count(jobs)}
        </li>
      ))}
      {queues.length > MOST_QUEUES && <li>and {queues.length - MOST_QUEUES} more queues</li>}
    </ul>
  );
}

function GroupActions({ group, queue }: { group: DeadGroup; queue?: string }) {
  return (
    <span class="buttons tight">
      {verbsFor('dead').map((verb) => (
        <button
          key={verb.action}
          type="button"
          class={`button small ${verb.danger ? 'danger' : ''}`}
          aria-label={`${verb.label} all with the error ${group.pattern}`}
          onClick={() => void start(verb, group, queue)}
        >
          {verb.label} all
        </button>
      ))}
    </span>
  );
}

/** Dead jobs can be retried and removed, never cancelled. */
function start(verb: Verb, group: DeadGroup, queue?: string): Promise<void> {
  const of = queue === undefined ? '' : ` of “${queue}”`;
  return startBulk({
    action: {
      action: verb.action === 'retry' ? 'retry' : 'remove',
      group: group.key,
      ...(queue === undefined ? {} : { queue }),
    },
    verb: verb.label,
    past: verb.past,
    jobs: (jobs) => `dead ${jobs === 1 ? 'job' : 'jobs'}${of} with this error`,
    note: verb.note,
    danger: verb.danger,
  });
}

import type { ScheduleRow } from '../../api.js';
import { Name, QueueLink } from '../components/name.js';
import { ACTIONS, Table } from '../components/table.js';
import { mayAct } from '../lib/api.js';
import { Ago, At, duration } from '../lib/time.js';
import { ScheduleActions } from './schedule-actions.js';

export function ScheduleTable({
  schedules,
  withQueue = false,
}: {
  schedules: readonly ScheduleRow[];
  withQueue?: boolean;
}) {
  return (
    <Table
      label="Schedules"
      class="cards schedule-table"
      heads={[
        ['Schedule', 'wide'],
        withQueue && ['Queue', 'wide'],
        ['When', 'when-column'],
        ['Next', 'next-column'],
        ['Last'],
        ['Payload', 'wide'],
        mayAct() && ACTIONS,
      ]}
    >
      {schedules.map((schedule) => (
        <Row key={schedule.name} schedule={schedule} withQueue={withQueue} />
      ))}
    </Table>
  );
}

function Row({ schedule, withQueue }: { schedule: ScheduleRow; withQueue: boolean }) {
  return (
    <tr>
      <th scope="row" class="wide card-title">
        <Name text={schedule.name} />
      </th>
      {withQueue && (
        <td class="wide" data-label="Queue">
          <QueueLink name={schedule.queue} row />
        </td>
      )}
      <td data-label="When">
        <When schedule={schedule} />
      </td>
      <td data-label="Next">
        <Next times={schedule.next} />
      </td>
      <td data-label="Last">
        {schedule.last === undefined ? <span class="zero">never</span> : <Ago at={schedule.last} />}
      </td>
      <td class="wide" data-label="Payload">
        <Name text={schedule.payload} mono />
      </td>
      {mayAct() && (
        <td class="actions">
          <ScheduleActions name={schedule.name} />
        </td>
      )}
    </tr>
  );
}

function When({ schedule: { cron, timezone, every, catchUp } }: { schedule: ScheduleRow }) {
  return (
    <span class="when" title={`Missed times: ${catchUp}`}>
      {cron !== undefined && <code>{cron}</code>}
      {cron !== undefined && <span class="muted"> {timezone ?? 'UTC'}</span>}
      {every !== undefined && `every ${duration(every)}`}
    </span>
  );
}

/** The next time, and those after it for who wants to know. */
function Next({ times }: { times: readonly number[] }) {
  const [first, ...later] = times;
  if (first === undefined) return <span class="zero">never</span>;
  return (
    <details class="next">
      <summary>
        <Ago at={first} />
      </summary>
      <ol>
        {[first, ...later].map((at) => (
          <li key={at}>
            <At at={at} />
          </li>
        ))}
      </ol>
    </details>
  );
}

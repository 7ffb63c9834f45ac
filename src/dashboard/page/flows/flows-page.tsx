import type { FlowRow } from '../../api.js';
import { Command } from '../components/copy.js';
import { Empty } from '../components/empty.js';
import { Name, ROW } from '../components/name.js';
import { Skeleton } from '../components/skeleton.js';
import { Table } from '../components/table.js';
import { Page } from '../frame/page.js';
import { count } from '../lib/format.js';
import { useView } from '../lib/live.js';
import { href } from '../lib/router.js';
import { storeOption } from '../lib/store-option.js';
import { Ago, duration, Since } from '../lib/time.js';
import { FlowBadge, StateBar } from './states.js';

export function FlowsPage() {
  const { content, loading, refusal } = useView('flows', {});
  return (
    <Page title="Flows">
      {loading && <Skeleton rows={8} />}
      {refusal && <Empty title={refusal.message} />}
      {content && (content.flows.length === 0 ? <NoFlows /> : <FlowTable flows={content.flows} />)}
      {content?.more && <p class="muted">Only the newest {count(content.flows.length)} are shown.</p>}
    </Page>
  );
}

function NoFlows() {
  return (
    <Empty title="No flow has run on this store">
      <p>A flow is a graph of commands, functions and jobs that depend on each other. Write one to pipeline.yaml:</p>
      <pre class="example">{`nodes:
  fetch: { run: "./fetch.sh" }
  clean: { run: "./clean.sh", needs: [fetch] }`}</pre>
      <p>and run it on the store that this dashboard shows:</p>
      <Command line={`npx crore run pipeline.yaml${storeOption()}`} />
    </Empty>
  );
}

function FlowTable({ flows }: { flows: readonly FlowRow[] }) {
  return (
    <Table
      label="Flows"
      class="cards flow-table"
      heads={[['Flow', 'wide'], ['State'], ['Nodes', 'nodes'], ['Started'], ['Took'], ['Runner', 'runner']]}
    >
      {flows.map((flow) => (
        <Row key={flow.id} flow={flow} />
      ))}
    </Table>
  );
}

function Row({ flow }: { flow: FlowRow }) {
  const { counts, size } = flow;
  const over = (counts.done ?? 0) + (counts.failed ?? 0) + (counts.skipped ?? 0) + (counts.cancelled ?? 0);
  return (
    <tr>
      <th scope="row" class="wide card-title">
        <a class="name-link" href={href('flow', { id: flow.id })} {...ROW}>
          <Name text={flow.name} />
        </a>
        <span class="row-notes muted">
          <Name text={flow.id} mono />
        </span>
      </th>
      <td data-label="State">
        <FlowBadge state={flow.state} />
      </td>
      <td class="nodes wide" data-label="Nodes">
        <StateBar counts={counts} />
        <span class="muted small-text">
          {count(over)} of {count(size)} finished
        </span>
      </td>
      <td data-label="Started">
        <Ago at={flow.createdAt} />
      </td>
      <td data-label="Took">
        <Took flow={flow} />
      </td>
      <td class="runner" data-label="Runner">
        <Name text={`${flow.host} · ${flow.pid}`} />
      </td>
    </tr>
  );
}

export function Took({ flow }: { flow: FlowRow }) {
  if (flow.finishedAt !== undefined) return <>{duration(Math.max(0, flow.finishedAt - flow.createdAt))}</>;
  return flow.state === 'running' ? <Since at={flow.createdAt} /> : <span class="muted">not known</span>;
}

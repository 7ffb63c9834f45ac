import { useMemo, useRef, useState } from 'preact/hooks';
import type { FlowRow, FlowView } from '../../api.js';
import { Empty } from '../components/empty.js';
import { Name } from '../components/name.js';
import { Skeleton } from '../components/skeleton.js';
import { confirm } from '../frame/confirm.js';
import { Page } from '../frame/page.js';
import { mayAct } from '../lib/api.js';
import { plural } from '../lib/format.js';
import { useView } from '../lib/live.js';
import { href, hrefWith, location, replace } from '../lib/router.js';
import { At } from '../lib/time.js';
import { actAndSay } from '../lib/toast.js';
import { Took } from './flows-page.js';
import { Gantt } from './gantt.js';
import { Graph } from './graph.js';
import { NodePanel } from './node-panel.js';
import { NodeSearch } from './node-search.js';
import { keyOf, type Wanted } from './pictures.js';
import { FlowBadge, StateBar, StateList } from './states.js';

export function FlowPage() {
  const id = location.value.query.get('id') ?? '';
  const { content, loading, refusal } = useView('flow', { id });
  const trail = <a href={href('flows')}>Flows</a>;
  if (refusal && !content)
    return (
      <Page title={id} trail={trail}>
        <Empty title={refusal.status === 404 ? 'There is no such flow' : refusal.message}>
          <p>A store keeps the ten latest flows of each name.</p>
        </Empty>
      </Page>
    );
  const flow = content?.flow;
  return (
    <Page
      title={flow?.name ?? id}
      trail={trail}
      beside={flow && <FlowBadge state={flow.state} />}
      actions={flow && <Cancel flow={flow} />}
    >
      {loading && <Skeleton rows={10} />}
      {content && <Shown view={content} />}
    </Page>
  );
}

function Shown({ view }: { view: FlowView }) {
  const { flow, problem } = view;
  return (
    <>
      <div class="flow-head">
        <p class="flow-facts muted">
          <Name text={flow.id} mono />
          <span>
            started <At at={flow.createdAt} />
          </span>
          <span>
            {flow.state === 'running' ? 'for' : 'took'} <Took flow={flow} />
          </span>
          <Name text={`${flow.host} · ${flow.pid}`} />
          {flow.file !== '' && <Name text={flow.file} mono />}
        </p>
        <StateBar counts={flow.counts} label={false} />
        <StateList counts={flow.counts} />
      </div>
      {problem === undefined ? <Pictures view={view} /> : <Empty title={problem} />}
    </>
  );
}

function Pictures({ view }: { view: FlowView }) {
  const { query } = location.value;
  const gantt = query.get('tab') === 'gantt';
  const chosen = query.get('node') ?? undefined;
  const [wanted, setWanted] = useState<Wanted | undefined>(chosen === undefined ? undefined : { key: chosen, turn: 0 });
  const [critical, setCritical] = useState(false);
  const choose = (key: string | undefined) => replace(hrefWith({ node: key }));
  const place = useRef<HTMLDivElement>(null);
  const close = () => {
    choose(undefined);
    place.current?.querySelector<HTMLElement>('.graph-svg, .gantt-place')?.focus({ preventScroll: true });
  };
  const find = (key: string) => {
    choose(key);
    setWanted({ key, turn: (wanted?.turn ?? 0) + 1 });
  };
  const index = useMemo(() => new Map(view.nodes.map((node, i) => [keyOf(node), i])), [view.nodes]);
  const at = chosen === undefined ? undefined : index.get(chosen);
  const marked = useMemo(() => new Set(critical ? view.criticalPath : []), [critical, view.criticalPath]);
  const shared = { view, marked, chosen: at, wanted, index, onChoose: choose };
  return (
    <div>
      <nav class="tabs" aria-label="Pictures of the flow">
        <a href={hrefWith({ tab: undefined })} aria-current={gantt ? undefined : 'page'}>
          Graph
        </a>
        <a href={hrefWith({ tab: 'gantt' })} aria-current={gantt ? 'page' : undefined}>
          Gantt
        </a>
      </nav>
      <div class="flow-tools">
        <NodeSearch nodes={view.nodes} onFind={find} />
        <label class="check">
          <input type="checkbox" checked={critical} onChange={(event) => setCritical(event.currentTarget.checked)} />{' '}
          Critical path
        </label>
        <Notes view={view} />
      </div>
      <div ref={place} class={at === undefined ? 'flow-place' : 'flow-place with-panel'}>
        {gantt ? <Gantt {...shared} /> : <Graph {...shared} />}
        {at !== undefined && (
          <NodePanel view={view} at={at} onFind={(node) => find(keyOf(view.nodes[node]!))} onClose={close} />
        )}
      </div>
    </div>
  );
}

function Notes({ view }: { view: FlowView }) {
  const groups = view.nodes.filter(({ size }) => size !== undefined).length;
  return (
    <span class="muted small-text">
      {groups > 0 &&
        `${plural(view.flow.size, 'node')} in ${plural(groups, 'group')}; failed and running ones on their own. `}
      {view.edgesLeftOut !== undefined && `${plural(view.edgesLeftOut, 'edge')} not shown.`}
    </span>
  );
}

function Cancel({ flow }: { flow: FlowRow }) {
  if (flow.state !== 'running' || !mayAct()) return null;
  const cancel = async () => {
    const title = 'Cancel this flow?';
    const text = 'Nodes that run are stopped. What has ended stays, and crore run --resume would go on from there.';
    if (await confirm({ title, text, verb: 'Cancel the flow', danger: true }))
      await actAndSay({ action: 'cancel-flow', id: flow.id }, ({ changed }) =>
        changed > 0 ? 'The flow was told to stop' : 'The flow had already ended',
      );
  };
  return (
    <button type="button" class="button danger" onClick={cancel}>
      Cancel
    </button>
  );
}

import type { RingItemRow, RingView } from '../../api.js';
import { Badge } from '../components/badge.js';
import { Empty } from '../components/empty.js';
import { Name } from '../components/name.js';
import { Pager } from '../components/pager.js';
import { Skeleton } from '../components/skeleton.js';
import { Table } from '../components/table.js';
import { Page, Section } from '../frame/page.js';
import { count } from '../lib/format.js';
import { useView } from '../lib/live.js';
import { href, location } from '../lib/router.js';
import { Ago, Since } from '../lib/time.js';
import { Locked } from './rings-page.js';

export function RingPage() {
  const { query } = location.value;
  const name = query.get('name') ?? '';
  const after = query.get('after') ?? undefined;
  const { content, loading, refusal } = useView('ring', { name, ...(after === undefined ? {} : { after }) });
  return (
    <Page title={name} trail={<a href={href('rings')}>Rings</a>}>
      {loading && <Skeleton rows={8} />}
      {refusal && !content && (
        <Empty title={refusal.status === 404 ? 'There is no such ring' : refusal.message}>
          <p>Rings that w8y uses on this store are found by themselves.</p>
        </Empty>
      )}
      {content && <Shown view={content} after={after} />}
    </Page>
  );
}

function Shown({ view, after }: { view: RingView; after: string | undefined }) {
  const { ring, held, items } = view;
  return (
    <>
      <dl class="figures">
        <div>
          <dt>Items</dt>
          <dd>{count(ring.items)}</dd>
        </div>
        <div>
          <dt>Locked</dt>
          <dd>
            <Locked ring={ring} />
          </dd>
        </div>
      </dl>
      {held && held.length > 0 && (
        <Section title="Locked items">
          <Items rows={held} from={undefined} />
        </Section>
      )}
      <Section title="All items, the next one first">
        {items.length === 0 ? <Empty title="The ring is empty" /> : <Items rows={items} from={Number(after ?? 0)} />}
        <Pager parameter="after" next={view.after} />
      </Section>
    </>
  );
}

/** `from` is the position of the first row. */
function Items({ rows, from }: { rows: readonly RingItemRow[]; from: number | undefined }) {
  return (
    <Table
      label={from === undefined ? 'Locked items' : 'Items'}
      class="cards item-table"
      heads={[
        from !== undefined && ['Place', 'figure'],
        ['Item', 'wide'],
        ['State'],
        ['Holder', 'holder'],
        ['For'],
        ['Lock ends'],
      ]}
    >
      {rows.map((row, i) => (
        <Item key={i} row={row} place={from === undefined ? undefined : from + i + 1} />
      ))}
    </Table>
  );
}

function Item({ row: { item, holder }, place }: { row: RingItemRow; place: number | undefined }) {
  return (
    <tr>
      {place !== undefined && (
        <td class="figure muted" data-label="Place">
          {count(place)}
        </td>
      )}
      <th scope="row" class="wide card-title">
        <Name text={item} mono />
      </th>
      <td data-label="State">{stateOf(holder)}</td>
      <td class="holder wide" data-label="Holder">
        {holder && <Name text={holder.host === undefined ? 'another program' : `${holder.host} · ${holder.pid}`} />}
      </td>
      <td data-label="For">{holder?.since !== undefined && !holder.resting && <Since at={holder.since} />}</td>
      <td data-label="Lock ends">{holder && <Ago at={holder.until} />}</td>
    </tr>
  );
}

function stateOf(holder: RingItemRow['holder']) {
  if (!holder) return <span class="muted">free</span>;
  if (holder.resting)
    return <Badge text="resting" tone="warn" title="It was worked on and is left alone for a while" />;
  return <Badge text="worked on" tone="active" title={`Token ${holder.token}`} />;
}

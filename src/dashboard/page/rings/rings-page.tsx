import type { RingRow } from '../../api.js';
import { Command } from '../components/copy.js';
import { Empty } from '../components/empty.js';
import { Name, ROW } from '../components/name.js';
import { Skeleton } from '../components/skeleton.js';
import { Table } from '../components/table.js';
import { Page } from '../frame/page.js';
import { count } from '../lib/format.js';
import { useView } from '../lib/live.js';
import { href } from '../lib/router.js';

export function RingsPage() {
  const { content, loading, refusal } = useView('rings', {});
  return (
    <Page title="Rings">
      {loading && <Skeleton rows={6} />}
      {refusal && <Empty title={refusal.message} />}
      {content && (content.rings.length === 0 ? <NoRings /> : <RingTable rings={content.rings} />)}
      {content?.more && <p class="muted">Only {count(content.rings.length)} rings are shown, those used last.</p>}
    </Page>
  );
}

function NoRings() {
  return (
    <Empty title="No ring is in use on this store">
      <p>
        A ring is a list of items that workers walk over again and again, each item by one of them at a time. Fill one,
        and run any program for its items:
      </p>
      <Command line="redis-cli RPUSH work:list acme globex initech" />
      <Command line="npx w8y -u redis://localhost:6379 -k work -c ./script {}" />
      <p>With a SQLite file, give -u sqlite:crore.db instead. Rings appear here when w8y has used them.</p>
    </Empty>
  );
}

function RingTable({ rings }: { rings: readonly RingRow[] }) {
  return (
    <Table
      label="Rings"
      class="ring-table"
      heads={[
        ['Ring', 'wide'],
        ['Items', 'figure'],
        ['Locked', 'figure', 'Being worked on, or left alone for a while'],
      ]}
    >
      {rings.map((ring) => (
        <tr key={ring.name}>
          <th scope="row" class="wide">
            <a class="name-link" href={href('ring', { name: ring.name })} {...ROW}>
              <Name text={ring.name} mono />
            </a>
          </th>
          <td class="figure">{count(ring.items)}</td>
          <td class="figure">
            <Locked ring={ring} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** Only the right end of a long ring is looked at: what was taken last is there. */
export function Locked({ ring }: { ring: RingRow }) {
  if (ring.looked === undefined) return <>{count(ring.locked)}</>;
  return (
    <span title={`of the last ${count(ring.looked)} items`}>
      {count(ring.locked)}
      <span class="off-screen"> of the last {count(ring.looked)} items</span>
    </span>
  );
}

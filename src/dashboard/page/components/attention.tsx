import type { Attention } from '../../api.js';
import { href } from '../lib/router.js';
import { quoted, storeOption } from '../lib/store-option.js';
import { Command } from './copy.js';
import { Name } from './name.js';

/** What somebody should look at, with the most urgent on top. */
export function AttentionList({ items, calm }: { items: readonly Attention[]; calm?: string }) {
  if (items.length === 0) return calm === undefined ? null : <p class="calm">{calm}</p>;
  return (
    <ul class="attention">
      {items.map((item) => (
        <li key={`${item.kind} ${item.queue} ${item.flow?.id}`} class={item.urgent ? 'urgent' : ''}>
          <span class={`badge ${item.urgent ? 'tone-bad' : 'tone-warn'}`}>{item.urgent ? 'urgent' : 'notice'}</span>
          <span class="attention-text">
            {item.queue !== undefined && calm !== undefined && (
              <>
                <a class="name-link" href={targetOf(item)} data-row="">
                  <Name text={item.queue} />
                </a>{' '}
              </>
            )}
            {item.flow && (
              <>
                <a class="name-link" href={href('flow', { id: item.flow.id })} data-row="">
                  <Name text={item.flow.name} />
                </a>{' '}
              </>
            )}
            {item.text}
            {item.flow && <Resume flow={item.flow} />}
          </span>
        </li>
      ))}
    </ul>
  );
}

function targetOf({ kind, queue }: Attention): string {
  if (kind === 'dead' || kind === 'dropped') return href('dead', { queue });
  return href('queue', { name: queue, state: kind === 'waiting' || kind === 'no-worker' ? 'ready' : undefined });
}

/** Flows run where their files are, so this is a command and no button. */
function Resume({ flow: { id, file } }: { flow: NonNullable<Attention['flow']> }) {
  return <Command line={`crore run ${file === '' ? 'FILE' : quoted(file)} --resume ${quoted(id)}${storeOption()}`} />;
}

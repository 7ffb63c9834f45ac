import type { Content } from '../../api.js';
import { bytes } from '../lib/format.js';
import { CopyButton } from './copy.js';
import { Scroll } from './scroll.js';

const TOKEN = /("(?:\\.|[^"\\])*(?:"|$))(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
/** Longer texts stay without colours: a browser needs long for so many elements. */
const MOST_COLOURED = 60_000;

/** A payload or result, with its size and a button to copy it. */
export function ContentBox({ content, label }: { content: Content; label: string }) {
  return (
    <div class="content-box">
      <div class="content-head">
        <span class="muted">
          {content.kind === 'bytes' ? 'encoded or binary, ' : ''}
          {bytes(content.size)}
        </span>
        {content.cut && <span class="badge tone-warn">only the beginning is shown</span>}
        <CopyButton text={content.text} label={content.cut ? 'Copy this part' : 'Copy'} />
      </div>
      <Scroll class="content" label={label}>
        <pre>{content.kind === 'json' ? coloured(content.text) : content.text}</pre>
      </Scroll>
    </div>
  );
}

/** JSON with its tokens in spans; all of it is text, whatever it contains. */
function coloured(text: string) {
  if (text.length > MOST_COLOURED) return text;
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(TOKEN)) {
    const token = match[1] ?? match[0];
    parts.push(
      text.slice(end, match.index),
      <span key={match.index} class={classOf(match)}>
        {token}
      </span>,
    );
    end = match.index + token.length;
  }
  return [...parts, text.slice(end)];
}

function classOf(match: RegExpExecArray): string {
  if (match[2] !== undefined) return 'json-key';
  if (match[1] !== undefined) return 'json-text';
  return /\d/.test(match[0]) ? 'json-number' : 'json-word';
}

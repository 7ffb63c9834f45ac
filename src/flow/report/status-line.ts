import type { NodeTask } from '../executors/executor.js';
import type { Paint } from './screen.js';
import { clip, printable, textWidth } from './text-width.js';

/** What a status line is about. Items of map nodes count like nodes. */
export interface Status {
  ended: number;
  total: number;
  failed: number;
  /** Ended in an earlier run. */
  restored: number;
  /** In the order in which they were started. */
  running: ReadonlySet<NodeTask>;
  startedAt: number;
  now: number;
}

const PLAIN: Paint = (text) => text;
/** A name that is cut shorter than this says nothing. */
const SHORTEST = 8;

/** How much has ended, the estimated remaining time, and the names of what is running, as many as fit. */
export function statusLine(status: Status, columns: number, paint: Paint = PLAIN): string {
  const head = counts(status, PLAIN);
  const room = columns - textWidth(head);
  if (room < 0) return clip(head, columns);
  return counts(status, paint) + paint(names(status, room), 'cyan');
}

function counts({ ended, total, failed, restored, running, startedAt, now }: Status, paint: Paint): string {
  const percent = total === 0 ? 100 : Math.floor((ended * 100) / total);
  const bad = failed > 0 ? `, ${paint(`${failed} failed`, 'red')}` : '';
  const fresh = ended - restored;
  const left = fresh > 0 ? `, ${duration(((total - ended) * (now - startedAt)) / fresh)} to go` : '';
  return `[${ended}/${total}] ${percent}% ${running.size} running${bad}${left}`;
}

/** The one that has been running longest comes first, with its time. `+3` says that three more do not fit. */
function names({ running, now }: Status, room: number): string {
  let text = '';
  let left = running.size;
  for (const { id, startedAt } of running) {
    const time = text === '' ? ` ${duration(now - startedAt)}` : '';
    const before = text === '' ? ': ' : ', ';
    const more = left > 1 ? ` +${left - 1}` : '';
    const free = room - textWidth(text + before + time + more);
    const name = text === '' ? clip(printable(id), Math.max(free, SHORTEST)) : printable(id);
    if (textWidth(name) > free) break;
    text += before + name + time;
    left--;
  }
  return left > 0 && text !== '' ? `${text} +${left}` : text;
}

export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, '0')}s`;
  return `${Math.floor(seconds / 3_600)}h${String(Math.floor((seconds % 3_600) / 60)).padStart(2, '0')}m`;
}

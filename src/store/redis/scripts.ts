import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface Script {
  name: string;
  source: string;
  sha: string;
}

/** The files in lua/, but for the shared ones. */
export type ScriptName =
  | 'add'
  | 'add_from_source'
  | 'add_grouped'
  | 'add_plain'
  | 'cancel'
  | 'claim'
  | 'claim_tasks'
  | 'clear_tasks'
  | 'count'
  | 'deliver_ends'
  | 'done'
  | 'done_tasks'
  | 'drain_outbox'
  | 'enqueue_tasks'
  | 'expire_session'
  | 'finish_tasks'
  | 'fire_schedule'
  | 'get'
  | 'heartbeat'
  | 'join'
  | 'leave'
  | 'link_dependents'
  | 'list'
  | 'obliterate'
  | 'pause'
  | 'push'
  | 'put_schedule'
  | 'read_events'
  | 'record_events'
  | 'record_progress'
  | 'register'
  | 'remove'
  | 'remove_schedule'
  | 'remove_tasks'
  | 'report_success'
  | 'retire'
  | 'retry_dead'
  | 'schedules'
  | 'set_limits'
  | 'settle'
  | 'source_position'
  | 'sweep'
  | 'unregister'
  | 'update_session'
  | 'waiting_tasks'
  | 'watch_for_end';

/** Scripts that do what another one does, and something more: they find it as a function of its name. */
const WITHIN: Partial<Record<ScriptName, ScriptName>> = { add_from_source: 'add' };

/** Scripts that do something of their own first and then go on as another. */
const TAILS: Partial<Record<ScriptName, ScriptName>> = { fire_schedule: 'add' };

const scripts = new Map<ScriptName, Script>();

/** A script with what it needs of the shared part in front of it. */
export function scriptOf(name: ScriptName): Script {
  let script = scripts.get(name);
  if (!script) {
    const inner = WITHIN[name];
    const wrapped = inner ? [`local function ${inner}()`, read(inner), 'end'] : [];
    const tail = TAILS[name] ? [read(TAILS[name])] : [];
    const own = [...wrapped, read(name), ...tail].join('\n');
    const source = `${sharedFor(own)}\n${own}`;
    script = { name, source, sha: createHash('sha1').update(source).digest('hex') };
    scripts.set(name, script);
  }
  return script;
}

function read(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');
}

/** A statement of the shared part: each begins with `local` at the start of a line. */
interface Piece {
  text: string;
  names: string[];
  words: Set<string>;
}

let pieces: Piece[] | undefined;

/**
 * The statements that a script needs, by name, and those that these need: a function that is not there need not be made
 * with every call, which for all of them together cost as much as ten commands.
 */
function sharedFor(own: string): string {
  pieces ??= ['lib', 'task_batch'].flatMap((name) => read(name).split(/^(?=local )/m)).map(asPiece);
  const words = wordsOf(own);
  const needed: string[] = [];
  // Backwards, for each uses what stands before it.
  for (const piece of pieces.toReversed()) {
    if (!piece.names.some((name) => words.has(name))) continue;
    needed.push(piece.text);
    for (const word of piece.words) words.add(word);
  }
  return needed.reverse().join('');
}

function asPiece(text: string): Piece {
  const names = /^local (?:function )?([\w, ]+)/.exec(text)?.[1]?.split(', ') ?? [];
  return { text, names: names.map((name) => name.trim()), words: wordsOf(text) };
}

function wordsOf(text: string): Set<string> {
  const code = text.replace(/--.*$/gm, '').replace(/'[^'\n]*'/g, '');
  return new Set(code.match(/[a-z_]\w*/gi));
}

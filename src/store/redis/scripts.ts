import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

export interface Script {
  name: string;
  source: string;
  sha: string;
}

/** The files in lua/, except those in lib/. */
export type ScriptName =
  | 'add'
  | 'add_and_claim'
  | 'add_from_source'
  | 'add_grouped'
  | 'add_plain'
  | 'cancel'
  | 'claim'
  | 'claim_tasks'
  | 'clear_tasks'
  | 'close_batch'
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
  | 'move_cleared'
  | 'move_done'
  | 'move_in'
  | 'move_out'
  | 'obliterate'
  | 'park'
  | 'pause'
  | 'push'
  | 'push_and_claim'
  | 'put_schedule'
  | 'read_events'
  | 'record_events'
  | 'record_history'
  | 'record_progress'
  | 'register'
  | 'release_kept'
  | 'release_members'
  | 'remove'
  | 'remove_schedule'
  | 'remove_tasks'
  | 'report_success'
  | 'reserve_members'
  | 'retire'
  | 'rerun'
  | 'schedules'
  | 'set_breaker'
  | 'set_limits'
  | 'settle'
  | 'source_position'
  | 'sweep'
  | 'sweep_quiet'
  | 'unregister'
  | 'update'
  | 'update_session'
  | 'waiting_tasks'
  | 'watch_for_end'
  | 'withdraw';

/** Scripts that call others, as functions of their names. */
const WITHIN: Partial<Record<ScriptName, ScriptName[]>> = {
  add_from_source: ['add'],
  add_and_claim: ['add_plain', 'claim'],
  push_and_claim: ['push', 'claim'],
};

/** Scripts that run code of their own first and then continue as another one. */
const TAILS: Partial<Record<ScriptName, ScriptName>> = { fire_schedule: 'add' };

const scripts = new Map<ScriptName, Script>();

/**
 * A script, preceded by everything it includes. If it has a line `-- first: NAME`, that file comes before the includes that only the rest needs: it answers
 * the common case by itself. That of a script within it does not count.
 */
export function scriptOf(name: ScriptName): Script {
  let script = scripts.get(name);
  if (!script) {
    const wrapped = (WITHIN[name] ?? []).flatMap((inner) => [`local function ${inner}(ARGV)`, read(inner), 'end']);
    const tail = TAILS[name] ? [read(TAILS[name])] : [];
    const own = [...wrapped, read(name), ...tail].join('\n');
    const first = [...own.matchAll(/^-- first: (\w+)$/gm)].at(-1)?.[1];
    const known = new Set<string>();
    const opening = first === undefined ? [] : [...includesOf(read(first), known), read(first)];
    const source = [...opening, ...includesOf(own, known), own].join('\n');
    script = { name, source, sha: createHash('sha1').update(source).digest('hex') };
    scripts.set(name, script);
  }
  return script;
}

/**
 * The files of lua/lib/ that a text names in its lines `-- include: …`, each once and after its own includes. A script
 * includes only what it uses: every call creates all functions again, and forty of them cost as much as ten commands.
 */
function includesOf(text: string, known = new Set<string>()): string[] {
  const names = [...text.matchAll(/^-- include: (.*)$/gm)].flatMap(([, list]) => list!.split(' '));
  return names.flatMap((name) => {
    if (known.has(name)) return [];
    known.add(name);
    const included = read(name);
    return [...includesOf(included, known), included];
  });
}

const folder = new URL('./lua/', import.meta.url);

/** The path of each file by its name: names are unique across all folders. */
let places: Map<string, string> | undefined;

function read(name: string): string {
  places ??= new Map(
    readdirSync(folder, { recursive: true }).flatMap((path) => {
      const file = /([^/\\]+)\.lua$/.exec(String(path))?.[1];
      return file === undefined ? [] : [[file, String(path)] as const];
    }),
  );
  return readFileSync(new URL(places.get(name)!, folder), 'utf8');
}

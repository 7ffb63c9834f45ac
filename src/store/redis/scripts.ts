import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export interface Script {
  name: string;
  source: string;
  sha: string;
}

const NAMES = [
  'add',
  'add_grouped',
  'add_plain',
  'await',
  'beat',
  'cancel',
  'carried',
  'carry',
  'claim',
  'clear',
  'count',
  'deliver',
  'done',
  'done_tasks',
  'doom',
  'drop_schedule',
  'enqueue',
  'events',
  'finish',
  'fire',
  'get',
  'inform',
  'join',
  'leave',
  'link',
  'list',
  'note',
  'obliterate',
  'outbox',
  'pace',
  'pause',
  'push',
  'put_schedule',
  'record',
  'remove',
  'remove_tasks',
  'report',
  'revive',
  'schedules',
  'settle',
  'sweep',
  'take',
  'waiting',
] as const;

export type ScriptName = (typeof NAMES)[number];

/** Scripts that end leases of raw tasks. */
const SHEAVES: readonly ScriptName[] = ['done_tasks', 'finish', 'note', 'settle'];

/** Scripts that do what another one does, and something more: they find it as a function of its name. */
const WITHIN: Partial<Record<ScriptName, ScriptName>> = { carry: 'add' };

function read(name: string): string {
  return readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');
}

/** Scripts that do something of their own first and then go on as another. */
const TAILS: Partial<Record<ScriptName, ScriptName>> = { fire: 'add' };

/** Every script with the shared part in front of it, read once. */
export const SCRIPTS: Readonly<Record<ScriptName, Script>> = (() => {
  const shared = read('lib');
  const sheaf = read('sheaf');
  const scripts = {} as Record<ScriptName, Script>;
  for (const name of NAMES) {
    const inner = WITHIN[name];
    const wrapped = inner ? [`local function ${inner}()`, read(inner), 'end'] : [];
    const tail = name in TAILS ? [read(TAILS[name]!)] : [];
    const sheaves = SHEAVES.includes(name) ? [sheaf] : [];
    const source = [shared, ...sheaves, ...wrapped, read(name), ...tail].join('\n');
    scripts[name] = { name, source, sha: createHash('sha1').update(source).digest('hex') };
  }
  return scripts;
})();

import { quote } from '../../process/shell-quote.js';
import type { NodeTask } from './executor.js';

/** Upstream results that a command can be given in its environment; more belongs in a file. */
export const NEEDS_LIMIT = 98_304;

/**
 * Words by which a shell means itself, in any of the shells that are called `sh`: they would change the one that goes on
 * to the next command, or end it, or wait for more lines.
 */
const OWN_WORDS = new Set(
  `. : alias autoload bg bind break builtin caller case cd chdir command compgen complete compopt continue coproc declare
  dirs disable disown do done elif else emulate enable esac eval exec exit export fc fg fi float for foreach function
  functions getopts hash history if in integer jobs let limit local log logout mapfile nameref newgrp nocorrect noglob popd
  print pushd pushln r read readarray readonly rehash repeat return sched select set setopt shift shopt source stop suspend
  then time times trap ttyctl type typeset ulimit umask unalias unfunction unhash unlimit unset unsetopt until vared wait
  whence where which while zmodload zstyle`.split(/\s+/),
);

/** The piece of shell that is a task; undefined when its environment would be too large. */
export function scriptOf({ id, spec, attempt, needs, item, part }: NodeTask, functions: boolean): string | undefined {
  const { env, cwd } = spec.options;
  if (spec.work.kind !== 'shell') throw new Error(`node '${id}' is not a command`);
  const { run } = spec.work;
  let variables = '';
  const put = (name: string, value: string): void => {
    variables += `${name}=${quote(value)} `;
  };
  for (const name in env) put(name, env[name]!);
  put('CRORE_NODE', id);
  put('CRORE_ATTEMPT', String(attempt));
  if (needs) putNeeds(needs, put);
  if (part !== undefined) {
    put('CRORE_ITEM', asText(item));
    put('CRORE_INDEX', String(part));
  }
  if (variables.length > NEEDS_LIMIT) return undefined;
  const plain = env === undefined && cwd === undefined && !functions ? plainOf(run) : undefined;
  // Nothing is remembered of where programs are: a node may install the program of the next.
  if (plain !== undefined) return `hash -r\n${variables}${plain} </dev/null\n`;
  const place = cwd === undefined ? '' : `cd -- ${quote(cwd)} || exit 126\n`;
  const command = typeof run === 'string' ? `eval ${quoteAlways(run)}` : `exec ${run.map(quote).join(' ')}`;
  return `(${place}export ${variables}\n${command}\n) </dev/null\n`;
}

/**
 * A program with its arguments that the shell can start as it stands: in a subshell, each command would take a process more.
 * Without any character that has a meaning of its own, and without the shell's own words.
 */
function plainOf(run: string | readonly string[]): string | undefined {
  if (typeof run !== 'string') return run[0]?.includes('/') ? run.map(quote).join(' ') : undefined;
  const word = /^[ \t]*([\w./@+,:-]+)(?:[ \t]+[\w./@%+,:=-]+)*\s*$/.exec(run)?.[1];
  return word === undefined || OWN_WORDS.has(word) ? undefined : run.trim();
}

/** Upstream results: all of them as JSON in one variable, and each in one of its own where its id can name one. */
function putNeeds(needs: Record<string, unknown>, put: (name: string, value: string) => void): void {
  put('CRORE_NEEDS', JSON.stringify(needs));
  for (const [id, value] of Object.entries(needs)) {
    if (/^\w+$/.test(id)) put(`CRORE_RESULT_${id}`, asText(value));
  }
}

function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

function quoteAlways(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

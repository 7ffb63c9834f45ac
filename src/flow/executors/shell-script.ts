import { quote } from '../../process/shell-quote.js';
import type { NodeTask } from './executor.js';

/** Most bytes of upstream results that fit into a command's environment; larger results belong in a file. */
export const NEEDS_LIMIT = 98_304;

/**
 * Words that act on the shell itself, in any of the shells installed as `sh`: they would change the shell that runs the
 * next command, or end it, or make it wait for more lines.
 */
const OWN_WORDS = new Set(
  `. : alias autoload bg bind break builtin caller case cd chdir command compgen complete compopt continue coproc declare
  dirs disable disown do done elif else emulate enable esac eval exec exit export fc fg fi float for foreach function
  functions getopts hash history if in integer jobs let limit local log logout mapfile nameref newgrp nocorrect noglob popd
  print pushd pushln r read readarray readonly rehash repeat return sched select set setopt shift shopt source stop suspend
  then time times trap ttyctl type typeset ulimit umask unalias unfunction unhash unlimit unset unsetopt until vared wait
  whence where which while zmodload zstyle`.split(/\s+/),
);

/** The shell script of a task; undefined when its environment would be too large. */
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
  // Clears the shell's table of program locations: a node may install the program of the next one.
  if (plain !== undefined) return `hash -r\n${variables}${plain} </dev/null\n`;
  const place = cwd === undefined ? '' : `cd -- ${quote(cwd)} || exit 126\n`;
  const command = typeof run === 'string' ? `eval ${quoteAlways(run)}` : `exec ${run.map(quote).join(' ')}`;
  return `(${place}export ${variables}\n${command}\n) </dev/null\n`;
}

/**
 * A program with arguments that the shell can start directly: a subshell would cost one more process for each command.
 * It may contain no special characters and none of the shell's own words.
 */
function plainOf(run: string | readonly string[]): string | undefined {
  if (typeof run !== 'string') return run[0]?.includes('/') ? run.map(quote).join(' ') : undefined;
  const word = /^[ \t]*([\w./@+,:-]+)(?:[ \t]+[\w./@%+,:=-]+)*\s*$/.exec(run)?.[1];
  return word === undefined || OWN_WORDS.has(word) ? undefined : run.trim();
}

/** Upstream results: all of them as JSON in one variable, and each in its own variable if its id is a valid name. */
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

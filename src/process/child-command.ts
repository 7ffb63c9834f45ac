import { isUtf8 } from 'node:buffer';
import { MARK } from './orphan-guard.js';

/** The command to start for an item. */
export interface ChildCommand {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly stdin: 'inherit' | 'ignore' | Buffer;
  /** A pipe for the caller to read, or one of our own descriptors; default: our stdout. */
  readonly stdout?: 'pipe' | number;
  /** A pipe for the caller to read; default: our stderr. */
  readonly stderr?: 'pipe';
}

export interface ChildCommandOptions {
  readonly command: readonly string[];
  readonly envVar: string;
  readonly stdin: 'inherit' | 'null' | 'item';
  /** The environment that children inherit; default: that of this process. */
  readonly env?: NodeJS.ProcessEnv;
}

/** The longest argument or variable that Linux accepts, whatever their total. */
const LONGEST = 131_071;

/**
 * Node encodes every argument as UTF-8, so an item that is not UTF-8 is passed as octal escapes to this constant
 * script, which converts them back into bytes. The dot keeps the substitution from removing trailing newlines.
 */
const TRAMPOLINE = `
_w8y_name=$1
_w8y_word=$(printf '%b.' "$2")
[ -z "$_w8y_name" ] || export "$_w8y_name=\${_w8y_word%.}"
shift 2
_w8y_left=$#
while [ "$_w8y_left" -gt 0 ]; do
  _w8y_word=$(printf '%b.' "$1")
  shift
  set -- "$@" "\${_w8y_word%.}"
  _w8y_left=$((_w8y_left - 1))
done
exec "$@"
`;

/** The command for an item, or the reason why no process can receive it. */
export function childCommand(item: Buffer, options: ChildCommandOptions, mark: string): ChildCommand | string {
  const [file, ...args] = options.command;
  const named = options.envVar !== '' || args.some((arg) => arg.includes('{}'));
  if (named && item.includes(0)) return 'it contains a NUL byte, which arguments and variables cannot contain';
  const plan = isUtf8(item) || !named ? plain(item, options, mark) : trampoline(item, options, mark);
  if (typeof plan === 'string') return plan;
  const values = [...plan.args, `${options.envVar}=${plan.env[options.envVar] ?? ''}`];
  const tooLong = process.platform === 'linux' && values.some((value) => Buffer.byteLength(value) > LONGEST);
  return tooLong ? `an argument or variable of ${file} would be longer than ${LONGEST} bytes` : plan;
}

function plain(item: Buffer, options: ChildCommandOptions, mark: string): ChildCommand {
  const [file, ...args] = options.command;
  const text = item.toString();
  const env: NodeJS.ProcessEnv = { ...(options.env ?? process.env), [MARK]: mark };
  if (options.envVar !== '') env[options.envVar] = text;
  return { file: file!, args: args.map((arg) => arg.split('{}').join(text)), env, stdin: input(item, options.stdin) };
}

function trampoline(item: Buffer, options: ChildCommandOptions, mark: string): ChildCommand | string {
  const { command, envVar } = options;
  if (!/^([A-Za-z_]\w*)?$/.test(envVar)) return `it is not UTF-8, and a shell cannot set the variable ${envVar}`;
  const octal = escapeBytes(item);
  const words = command.map((word, i) => (i === 0 ? escapeText(word) : word.split('{}').map(escapeText).join(octal)));
  const args = ['-c', TRAMPOLINE, 'w8y', envVar, octal, ...words];
  return {
    file: 'sh',
    args,
    env: { ...(options.env ?? process.env), [MARK]: mark },
    stdin: input(item, options.stdin),
  };
}

function input(item: Buffer, kind: ChildCommandOptions['stdin']): ChildCommand['stdin'] {
  if (kind === 'item') return item;
  return kind === 'null' ? 'ignore' : 'inherit';
}

function escapeText(text: string): string {
  return escapeBytes(Buffer.from(text));
}

function escapeBytes(bytes: Buffer): string {
  return bytes
    .toString('latin1')
    .replace(/[^\w./:=@,+-]/g, (char) => `\\0${char.charCodeAt(0).toString(8).padStart(3, '0')}`);
}

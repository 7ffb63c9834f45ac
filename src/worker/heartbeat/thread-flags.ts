/**
 * A thread inherits the flags of its process, whatever they are. With the one that says what the text of `--eval` is, a thread that has a file does not start:
 * then it inherits none, because those of V8 are refused when they are named.
 */
export function threadFlags(): { execArgv?: string[] } {
  return process.execArgv.some((flag) => flag.startsWith('--input-type')) ? { execArgv: [] } : {};
}

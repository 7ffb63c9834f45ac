import { main } from './main.js';

/** The program behind `bin/crore`: flushes the output, then ends the process, whatever is still open. */
void main(process.argv.slice(2)).then(() => setImmediate(leave)); // a failed write is reported before

function leave(): void {
  const full = [process.stdout, process.stderr].find((stream) => stream.writableLength > 0 && !stream.destroyed);
  if (!full) process.exit();
  full.once('drain', leave).once('close', leave);
}

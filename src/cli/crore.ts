import { main } from './main.js';
import { openStreams } from './streams.js';

/** The program behind `bin/crore`: flushes the output, then ends the process, whatever is still open. */
void main(process.argv.slice(2)).then(() => {
  if (openStreams.length === 0) process.exit(); // before what was just closed is cleaned up, which takes 2 ms after a flow
  setImmediate(leave); // a failed write is reported before
});

function leave(): void {
  const full = openStreams.find((stream) => stream.writableLength > 0 && !stream.destroyed);
  if (!full) process.exit();
  full.once('drain', leave).once('close', leave);
}

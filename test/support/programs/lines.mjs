// Runs many crore command lines in one process, one after the other, and prints each result as a line of JSON.
import { main } from '../../../dist/cli/main.js';

const real = process.stdout.write.bind(process.stdout);
const told = { out: '', err: '' };
process.stdout.write = (text) => {
  told.out += text;
  return true;
};
process.stderr.write = (text) => {
  told.err += text;
  return true;
};
for (const args of JSON.parse(process.argv[2])) {
  Object.assign(told, { out: '', err: '' });
  process.exitCode = undefined;
  await main(args);
  real(`${JSON.stringify({ code: process.exitCode, ...told })}\n`);
}
process.exitCode = 0;

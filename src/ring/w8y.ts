import { writeSync } from 'node:fs';
import { ring } from './command.js';
import { redact } from './url.js';

ring(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: Error) => {
    writeSync(2, `w8y: ${redact(String(error.stack))}\n`);
    process.exit(70);
  },
);

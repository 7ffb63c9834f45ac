import { writeSync } from 'node:fs';
import { redact } from '../redact.js';
import { ring } from './command.js';

ring(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: Error) => {
    writeSync(2, `w8y: ${redact(String(error.stack))}\n`);
    process.exit(70);
  },
);

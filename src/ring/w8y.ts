import { ring } from './command.js';

ring(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(70);
  },
);

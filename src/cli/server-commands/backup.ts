import { action, answer, type StoreOptions, withStore } from '../action.js';
import { printable } from '../output.js';
import { program, storeOptions } from '../program.js';

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore backup',
    summary: 'Write a complete copy of the store to a new file, while others use it. For SQLite files only.',
    examples: [
      ['crore backup jobs-2026-06-01.db', 'of sqlite:crore.db, or of what CRORE_STORE names'],
      ['crore backup --store sqlite:/var/lib/app/jobs.db copy.db', 'of another file'],
    ],
  }).argument('<file>', 'The new file; it must not exist.');
  action(storeOptions(command), backup);
  return answer(command, argv);
}

async function backup(file: string, options: StoreOptions): Promise<number> {
  return withStore(options, async ({ crore, out }) => {
    await crore.backup(file);
    out.say({ file, outcome: 'written' }, `${printable(file)}  written`);
    return 0;
  });
}

import { ring } from '../../ring/command.js';

/** The ring ends the process itself: an idle connection must not keep it alive. */
export async function run(argv: string[]): Promise<number> {
  process.exit(await ring(argv));
}

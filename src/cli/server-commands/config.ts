import { parse, program } from '../program.js';
import { settingOptions } from './serve.js';
import { type Key, resolveSettings, SETTINGS, show } from './settings.js';

/** Prints the effective settings, and with --show-origin where each value came from. */
export async function run(argv: string[]): Promise<number> {
  const command = settingOptions(
    program({
      name: 'crore config',
      summary: 'Print the effective settings of crore serve.',
      examples: [
        ['crore config --show-origin', 'each value, and the flag, variable or file it comes from'],
        ['crore config --json', 'one JSON object'],
      ],
    }),
  )
    .option('--show-origin', 'Show where each value comes from.')
    .option('--json', 'Print one JSON object.')
    .action((options: Record<string, unknown>) => print(options));
  await parse(command, argv);
  return 0;
}

function print(options: Record<string, unknown>): void {
  const { values, origins } = resolveSettings(options, process.env, options.config as string | undefined);
  const keys = SETTINGS.map(({ key }) => key) as Key[];
  if (options.json) {
    const entries = keys.map((key) => [key, { value: show(key, values[key]), origin: origins[key] }]);
    process.stdout.write(`${JSON.stringify(Object.fromEntries(entries))}\n`);
    return;
  }
  const width = Math.max(...keys.map((key) => key.length));
  for (const key of keys) {
    const line = `${key.padEnd(width)} = ${show(key, values[key])}`;
    process.stdout.write(options.showOrigin ? `${line.padEnd(60)}  # ${origins[key]}\n` : `${line}\n`);
  }
}

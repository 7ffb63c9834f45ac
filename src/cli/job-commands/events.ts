import { checkName } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import type { JobEvent } from '../../index.js';
import { EVENT_TYPES, type EventType } from '../../store/store.js';
import { action, answer, type StoreOptions, withStore } from '../action.js';
import { duration, whole } from '../option-values.js';
import { printable } from '../output.js';
import { program, storeOptions } from '../program.js';
import { onOutputClosed } from '../streams.js';
import { given } from './job-options.js';

interface Asked extends StoreOptions {
  after?: string;
  only?: string;
  for?: string;
  limit?: string;
}

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore events',
    summary:
      'Print the events of a queue, from now on or after a position. Events are recorded only while a process reads them, and for ten minutes after.',
    examples: [
      ['crore events mails', 'watch, until Ctrl-C'],
      ['crore events mails --only dead,retry', 'only failures'],
      ['crore events mails --json --after 1731715200000-0', 'continue after the position of an earlier event'],
      ['crore events mails --only done --limit 1 --for 1m', 'wait up to a minute for a job to be done'],
    ],
  })
    .argument('<queue>', 'Name of the queue.')
    .option('--after <position>', 'Start after the event at this position.')
    .option(
      '--only <types>',
      `Only these types, separated by commas: ${EVENT_TYPES.filter((type) => type !== 'gap').join(', ')}.`,
    )
    .option('--limit <n>', 'Exit after this many events.')
    .option('--for <time>', 'Exit after this time.');
  action(storeOptions(command), events);
  return answer(command, argv);
}

async function events(name: string, options: Asked): Promise<number> {
  checkName(name, 'queue name');
  const limit = whole(options.limit, '--limit', 1) ?? Number.POSITIVE_INFINITY;
  const time = duration(options.for, '--for');
  const wanted = given({ after: options.after, types: options.only?.split(',').map(typeOf) });
  return withStore(options, async ({ crore, out }) => {
    const stream = await crore.queue(name).events(wanted);
    const end = () => stream.close();
    const timer = time === undefined ? undefined : setTimeout(end, time);
    process.once('SIGINT', end).once('SIGTERM', end);
    const unsubscribe = onOutputClosed(end);
    let count = 0;
    try {
      for await (const event of stream) {
        out.say({ ...event, at: event.at.toISOString() }, shown(event));
        count += 1;
        if (count >= limit) break;
      }
    } finally {
      clearTimeout(timer);
      unsubscribe();
      process.off('SIGINT', end).off('SIGTERM', end);
      stream.close();
    }
    return 0;
  });
}

function typeOf(text: string): EventType {
  if ((EVENT_TYPES as readonly string[]).includes(text)) return text as EventType;
  throw new CroreError(
    'BAD_OPTION',
    `--only: unknown event type '${printable(text)}' (known: ${EVENT_TYPES.join(', ')})`,
  );
}

function shown({ at, type, id, attempt, progress, error, breaker, to }: JobEvent): string {
  const more =
    error ??
    breaker ??
    (to && `to ${to}`) ??
    (progress === undefined ? undefined : JSON.stringify(progress)) ??
    (attempt && `attempt ${attempt}`);
  return [at.toISOString(), type.padEnd(9), printable(id), ...(more ? [printable(more)] : [])].join('  ');
}

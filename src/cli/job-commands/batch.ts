import { checkName, checkOneOf } from '../../engine/input/check.js';
import { action, answer, type CommandSession, type StoreOptions, subcommand, withStore } from '../action.js';
import { printable } from '../output.js';
import { program } from '../program.js';
import { byUser } from './job-actions.js';
import { argumentBytes, readPayload, readText } from './job-options.js';
import { colourOf, countFields } from './job-view.js';

interface OpenOptions extends StoreOptions {
  id?: string;
  when?: string;
  text?: boolean;
}

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore batch',
    summary:
      'Open, close, show and cancel batches: jobs that belong together, and a job that runs when they have ended.',
    examples: [
      [`crore batch open reports '{"month":5}' --id may`, 'the job that runs in the end'],
      ['crore push mails ada bob --batch may --batch-queue reports', 'members, in any queue'],
      ['crore batch close reports may', 'no more members: run it when all have ended'],
      ['crore batch show reports may', 'how many members have ended, and how'],
    ],
  });
  const opening = subcommand(command, 'open <queue> [payload]', {
    summary: 'Add the job of a batch, which waits for the members; print its id, which is that of the batch.',
    examples: [
      ['crore batch open reports', 'with no payload, and a generated id'],
      ['crore batch open reports --when failure', 'run it as soon as a member has failed'],
    ],
  })
    .option('--id <id>', 'Id of the batch (default: generated).')
    .option(
      '--when <when>',
      'finished: when all have ended; failure: also when the first has failed (default: finished).',
    )
    .option('--text', 'Treat the payload as text, even if it looks like JSON.');
  action(opening, open);
  const closing = subcommand(command, 'close <queue> <id>', {
    summary: 'Take no more members: the job of the batch runs when all have ended.',
    examples: [['crore batch close reports may', 'the batch is complete']],
  });
  action(closing, onBatch(close));
  const showing = subcommand(command, 'show <queue> <id>', {
    summary: 'Show how many members a batch has, and how they ended.',
    examples: [
      ['crore batch show reports may', 'as text'],
      ['crore batch show reports may --json | jq .pending', 'members that have not ended'],
    ],
  });
  action(showing, onBatch(show));
  const cancelling = subcommand(command, 'cancel <queue> <id>', {
    summary: 'Cancel the members that have not ended, and the job of the batch.',
    examples: [
      ['crore batch cancel reports may', 'all of it'],
      ['crore batch cancel reports may --members', 'only the members: the job of the batch then runs'],
    ],
  }).option('--members', 'Cancel only the members.');
  action(cancelling, onBatch(cancel));
  return answer(command, argv);
}

async function open(name: string, payload: string | undefined, options: OpenOptions): Promise<number> {
  checkName(name, 'queue name');
  const id = options.id === undefined ? {} : { id: checkName(options.id, '--id') };
  const when = checkOneOf<'finished' | 'failure'>(options.when ?? 'finished', '--when', ['finished', 'failure']);
  const value = payload === undefined ? null : read(argumentBytes(payload), options.text === true);
  const work = async ({ crore, out }: CommandSession) => {
    const batch = await crore.queue(name).addBatch(value, { ...id, when });
    out.say({ queue: name, id: batch.id }, printable(batch.id, 512));
    return 0;
  };
  return withStore(options, work, { create: true });
}

function read(bytes: Buffer, asText: boolean): unknown {
  return asText ? readText(bytes) : readPayload(bytes, 'the payload');
}

type BatchOptions = StoreOptions & { members?: boolean };
type Work = (session: CommandSession, queue: string, id: string, options: BatchOptions) => Promise<number>;

function onBatch(work: Work): (queue: string, id: string, options: BatchOptions) => Promise<number> {
  return async (queue, id, options) => {
    checkName(queue, 'queue name');
    checkName(id, 'batch id');
    return withStore(options, (session) => work(session, queue, id, options));
  };
}

async function close({ crore, out }: CommandSession, queue: string, id: string): Promise<number> {
  const batch = crore.queue(queue).batch(id);
  await batch.close();
  const { pending } = await batch.status();
  out.say({ queue, id, pending }, pending === 0 ? 'closed' : `closed, ${pending} to go`);
  return 0;
}

async function show({ crore, out }: CommandSession, queue: string, id: string): Promise<number> {
  const status = await crore.queue(queue).batch(id).status();
  if (out.json) out.say({ queue, id, ...status }, '');
  else
    out.fields([
      ['id', printable(id)],
      ['queue', printable(queue)],
      ['state', out.paint(status.state, colourOf(status.state))],
      ...countFields(status),
    ]);
  return 0;
}

async function cancel(
  { crore, out }: CommandSession,
  queue: string,
  id: string,
  options: BatchOptions,
): Promise<number> {
  const batch = crore.queue(queue).batch(id);
  await batch.status();
  const by = byUser();
  const cancelled = options.members ? await batch.cancelMembers({ by }) : await batch.cancel({ by });
  out.say({ queue, id, cancelled }, `${cancelled} cancelled`);
  return 0;
}

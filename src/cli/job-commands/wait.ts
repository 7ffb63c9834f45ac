import { checkName } from '../../engine/input/check.js';
import { CroreError } from '../../errors.js';
import { action, answer, type StoreOptions, withStore } from '../action.js';
import { duration } from '../option-values.js';
import { printable } from '../output.js';
import { program, storeOptions } from '../program.js';
import { valueField, valueText } from './job-view.js';

interface WaitOptions extends StoreOptions {
  timeout?: string;
}

export function run(argv: string[]): Promise<number> {
  const command = program({
    name: 'crore wait',
    summary:
      'Wait until a job has ended and print its result. Exit codes: 0 done, 100 dead, 101 cancelled, 124 timeout, 1 no such job.',
    examples: [
      ['crore wait mails order-17', 'wait as long as it takes'],
      ['crore wait mails order-17 --timeout 30s', 'at most 30 seconds'],
      ['id=$(crore push sums "[1,2]") && crore wait sums "$id"', 'add a job and print its result'],
    ],
  })
    .argument('<queue>', 'Name of the queue.')
    .argument('<id>', 'Id of the job.')
    .option('--timeout <time>', "How long to wait, such as '30s' (default: no limit).");
  action(storeOptions(command), wait);
  return answer(command, argv);
}

async function wait(name: string, id: string, options: WaitOptions): Promise<number> {
  checkName(name, 'queue name');
  checkName(id, 'job id');
  const timeout = duration(options.timeout, '--timeout');
  return withStore(options, async ({ crore, out }) => {
    const queue = crore.queue(name);
    if (!(await queue.get(id))) {
      throw new CroreError('NOT_FOUND', `no job '${printable(id)}' in queue '${printable(name)}'`);
    }
    try {
      const result = await queue.handle(id).finished({ timeout });
      const object = { queue: name, id, state: 'done', ...valueField('result', result) };
      if (out.json || result !== undefined) out.say(object, valueText(result));
      return 0;
    } catch (error) {
      const { code, message } = error as CroreError;
      if (out.json) out.say({ queue: name, id, state: STATES[code], code, message }, '');
      throw error;
    }
  });
}

/** The job's state when the wait failed because of it. */
const STATES: Record<string, string> = { JOB_DEAD: 'dead', JOB_CANCELLED: 'cancelled' };

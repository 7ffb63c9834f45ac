import { randomBytes } from 'node:crypto';
import { CroreError } from '../errors.js';

const TOKEN = /^\d+\.[\w.-]{3,100}$/;

/**
 * A process id consists of the lease's token and the queue: all that is needed to finish or return it, from anywhere.
 */
export function processId(queue: string, token: string): string {
  return `${token}:${queue}`;
}

export function parseProcessId(id: unknown): { token: string; queue: string } {
  const cut = typeof id === 'string' ? id.indexOf(':') : -1;
  const [token, queue] = cut < 0 ? ['', ''] : [(id as string).slice(0, cut), (id as string).slice(cut + 1)];
  if (queue === '' || !TOKEN.test(token)) throw new CroreError('PROCESS_GONE', `${shown(id)} is not a process id`);
  return { token, queue };
}

export function gone(id: string): CroreError {
  const text = `process ${shown(id)} is gone: it was finished or returned, or its worker was lost`;
  return new CroreError('PROCESS_GONE', text);
}

/** Each session has its own name: a lost session must never be mistaken for its successor. */
export function sessionName(workerId: string): string {
  return `${workerId}~${randomBytes(9).toString('base64url')}`;
}

export function workerOf(session: string): string {
  // the engine's workers have names of another form
  return session.at(-13) === '~' ? session.slice(0, -13) : session;
}

function shown(id: unknown): string {
  return typeof id === 'string' ? `'${id.slice(0, 120)}'` : `of type ${typeof id}`;
}

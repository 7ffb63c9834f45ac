import type { Entry, Job } from '../../../job/job.js';
import { decodeSpec } from '../../../job/spec.js';
import type { Claim, LostEntry } from '../../store.js';
import type { Row } from '../connection/client.js';
import { payloadOf, toJob } from './rows.js';
import { makeToken } from './tokens.js';

/** Reads what `claim` returns: see sql/jobs/claim.sql. */
export function readClaim(queue: string, worker: string, [head, ...rows]: Row[]): Claim {
  const { status, more, now, token } = head as { status: Claim['status']; more: boolean; now: number; token: string };
  return {
    status,
    entries: rows.map((row) => readEntry(queue, worker, now, token, row)),
    more,
    nextAt: (head!.next_at as number | null) ?? undefined,
  };
}

function readEntry(queue: string, worker: string, now: number, own: string, row: Row): Entry {
  const attempt = row.attempt as number;
  if (row.task !== null)
    return { lease: { worker, token: makeToken(0, row.n as number, own) }, task: row.task as Buffer };
  const token = makeToken(attempt, row.n as number, own);
  const job: Job = {
    queue,
    id: row.id as string,
    state: 'active',
    payload: payloadOf(row),
    priority: row.priority as number,
    attempt,
    crashes: row.crashes as number,
    createdAt: row.created as number,
    startedAt: now,
    worker,
    token,
    spec: decodeSpec((row.spec as string | null) ?? ''),
  };
  if (row.ran !== null) job.runAt = Number(row.ran);
  return { lease: { worker, token, id: job.id, at: now }, job };
}

/** An entry of a dead worker or an ended reservation. */
export function readLost(queue: string, row: Row): LostEntry {
  const worker = row.worker as string;
  if (row.task !== null) {
    const token = makeToken(0, row.n as number, row.token as string);
    return { lease: { worker, token }, task: row.task as Buffer, why: 'worker', raw: row.raw === true };
  }
  const job = toJob(queue, row);
  return { lease: { worker, token: job.token!, id: job.id }, job, why: row.why as LostEntry['why'] };
}

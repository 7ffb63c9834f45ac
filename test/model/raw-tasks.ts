import { expect } from 'vitest';
import type { Entry } from '../../dist/job/job.js';
import { DEFAULT_SPEC } from '../../dist/job/spec.js';
import { finish } from '../../dist/job/transitions.js';
import type { WorkerSession } from '../../dist/store/store.js';
import { names } from '../support/jobs.js';
import { LEASE, type Sides } from './sides.js';
import type { TaskStep } from './steps.js';

/** Raw tasks claimed by hand. */
export async function rawTasks(sides: Sides, step: TaskStep): Promise<void> {
  const { queue, model } = sides;
  const { tasks } = model;
  switch (step.do) {
    case 'unique': {
      const task = Buffer.from(`unique ${step.task}`);
      const calls = [{ tasks: [task], unique: true }];
      return sides.agree([tasks.pushUnique(task)], (store) => store.raw!.enqueue(queue, calls));
    }
    case 'take':
      return take(sides, { queue, worker: `w${step.worker}`, lease: LEASE }, step.n);
    case 'finish':
      return finishOne(sides, sides.leased[step.which % Math.max(1, sides.leased.length)]);
    case 'drop': {
      const text = `unique ${step.task}`;
      return sides.agree(tasks.drop(text), (store) => store.raw!.remove(queue, Buffer.from(text)));
    }
    case 'clear':
      tasks.clear();
      await sides.each((store) => store.raw!.clear(queue));
      return;
    case 'expire session':
      return sides.agree(model.expireSession(`w${step.worker}`), (store) =>
        store.raw!.expireSession(queue, `w${step.worker}`),
      );
  }
}

async function take(sides: Sides, session: WorkerSession, n: number): Promise<void> {
  const wanted = sides.model.take(session, n);
  const takes = await sides.each((store) => store.raw!.claim(session, n, 'nonce'));
  for (const { status, claimed: taken } of takes) {
    const texts = taken.map(({ task }) => Buffer.from(task).toString());
    expect({ status, texts }).toEqual({ status: wanted.status, texts: names(wanted.entries) });
  }
  for (const [i, entry] of wanted.entries.entries()) {
    const found = takes.map(({ claimed: taken }): Entry => {
      const { token, task } = taken[i]!;
      return { lease: { worker: session.worker, token }, task };
    });
    sides.leased.push([entry, ...found]);
  }
}

async function finishOne(sides: Sides, leased: Entry[] | undefined): Promise<void> {
  const first = leased?.[0];
  if (!first?.task) return;
  const move = finish({ attempt: 1, crashes: 0, spec: DEFAULT_SPEC });
  const wanted = sides.model.settle([{ lease: first.lease, outcome: move, spec: DEFAULT_SPEC, priority: 0 }], true);
  await sides.agree(wanted, (store, i) => store.raw!.finish(sides.queue, [{ token: leased![i + 1]!.lease.token }]));
}

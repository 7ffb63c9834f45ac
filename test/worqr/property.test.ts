import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Worqr } from '../../dist/worqr/index.js';
import { LIVELY, STORES, workshop } from './support.js';

/** More runs: CRORE_MODEL_RUNS=500 npx vitest run test/worqr/property.test.ts */
const RUNS = Number(process.env.CRORE_MODEL_RUNS ?? 25);
const INSTANCES = 3;
const instance = fc.nat(INSTANCES - 1);
const task = fc.constantFrom('a', 'b', 'c', 'd');
const which = fc.nat(20);

type Step =
  | { do: 'enqueue'; by: number; tasks: string[]; unique: boolean }
  | { do: 'dequeue'; by: number; count: number }
  | { do: 'finish' | 'stop'; by: number; which: number[] }
  | { do: 'cancel'; by: number; task: string }
  | { do: 'delete'; by: number }
  | { do: 'stopWork' | 'fail'; by: number; whom: number };

const weighted = (weight: number, arbitrary: fc.Arbitrary<unknown>) => ({ weight, arbitrary });
const step = fc.oneof(
  weighted(
    6,
    fc.record({
      do: fc.constant('enqueue'),
      by: instance,
      tasks: fc.array(task, { minLength: 1, maxLength: 3 }),
      unique: fc.boolean(),
    }),
  ),
  weighted(6, fc.record({ do: fc.constant('dequeue'), by: instance, count: fc.integer({ min: 1, max: 3 }) })),
  weighted(
    6,
    fc.record({
      do: fc.constantFrom('finish', 'stop'),
      by: instance,
      which: fc.array(which, { minLength: 1, maxLength: 3 }),
    }),
  ),
  weighted(1, fc.record({ do: fc.constant('cancel'), by: instance, task })),
  weighted(1, fc.record({ do: fc.constant('delete'), by: instance })),
  weighted(1, fc.record({ do: fc.constantFrom('stopWork', 'fail'), by: instance, whom: instance })),
) as fc.Arbitrary<Step>;

interface Held {
  id: string;
  task: string;
  by: number;
  marked: boolean;
}

/** A queue as plain data. Processes stay in the list when they end, so that later picks are stale calls. */
class Model {
  waiting: string[] = [];
  readonly marks = new Set<string>();
  readonly held: Held[] = [];
  readonly given: Held[] = [];

  enqueue(tasks: string[], unique: boolean): boolean {
    const taken = (one: string, i: number) =>
      this.marks.has(one) || this.held.some((held) => held.task === one && held.marked) || tasks.indexOf(one) !== i;
    if (unique && tasks.some(taken)) return false;
    this.waiting.push(...tasks);
    if (unique) for (const one of tasks) this.marks.add(one);
    return true;
  }

  dequeue(by: number): Omit<Held, 'id'> | undefined {
    const next = this.waiting.shift();
    return next === undefined ? undefined : { task: next, by, marked: this.marks.delete(next) };
  }

  end(process: Held): boolean {
    const at = this.held.indexOf(process);
    if (at >= 0) this.held.splice(at, 1);
    return at >= 0;
  }

  /** In the order of their claims, which is the order of `held`. */
  giveBack(processes: Held[]): void {
    const back = this.held.filter((one) => processes.includes(one));
    for (const one of back) this.end(one);
    this.waiting.unshift(...back.map((one) => one.task));
    for (const one of back) if (one.marked) this.marks.add(one.task);
  }
}

describe.each(STORES)('any history of calls on %s', (store) => {
  const { place, make } = workshop();
  const crew = async (): Promise<Worqr[]> => {
    const url = await place[store]();
    return Array.from({ length: INSTANCES }, (_x, i) => make(url, { ...LIVELY, workerId: `w${i}` }));
  };
  /** The worker may have been failed without knowing it yet: then it is started again. */
  const ready = async (worqr: Worqr, queue: string): Promise<void> => {
    await worqr.startWorker();
    await worqr.startWork(queue).catch((error: { code: string }) => {
      if (error.code !== 'NOT_STARTED') throw error;
      return ready(worqr, queue);
    });
  };

  it('sequential: the queue matches the model after every step', { timeout: 600_000 }, async () => {
    const instances = await crew();
    let queues = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25, size: 'max' }), async (steps) => {
        const queue = `q${++queues}`;
        const model = new Model();
        for (const worqr of instances) await ready(worqr, queue);
        for (const one of steps) {
          await runOne(one, instances, queue, model);
          expect(await instances[one.by]!.getTasks(queue), JSON.stringify(one)).toEqual(model.waiting);
        }
        for (const name of 'abcd') {
          const found = await instances[0]!.getMatchingProcesses(name);
          const here = found.filter((id) => id.endsWith(`:${queue}`)).sort();
          expect(here).toEqual(
            model.held
              .filter((one) => one.task === name)
              .map(({ id }) => id)
              .sort(),
          );
        }
        for (const worqr of instances) await worqr.stopWork(queue);
        await instances[0]!.deleteQueue(queue);
      }),
      { numRuns: RUNS },
    );
  });

  async function runOne(one: Step, instances: Worqr[], queue: string, model: Model): Promise<void> {
    const worqr = instances[one.by]!;
    switch (one.do) {
      case 'enqueue': {
        const accepted = await worqr.enqueue(queue, one.tasks, one.unique).then(
          () => true,
          () => false,
        );
        expect(accepted, JSON.stringify(one)).toBe(model.enqueue(one.tasks, one.unique));
        return;
      }
      case 'dequeue': {
        const got = await Promise.all(Array.from({ length: one.count }, () => worqr.dequeue(queue)));
        for (const process of got) {
          const wanted = model.dequeue(one.by);
          expect(process?.task).toBe(wanted?.task);
          if (!process) continue;
          const held = { ...wanted!, id: process.id };
          model.held.push(held);
          model.given.push(held);
        }
        return;
      }
      case 'finish':
      case 'stop': {
        if (model.given.length === 0) return;
        const picks = [...new Set(one.which.map((i) => model.given[i % model.given.length]!))];
        const wanted = picks.map((pick) => model.held.includes(pick));
        const answers = await Promise.allSettled(
          picks.map(({ id }) => (one.do === 'finish' ? worqr.finishProcess(id) : worqr.stopProcess(id))),
        );
        expect(answers.map(({ status }) => status === 'fulfilled')).toEqual(wanted);
        if (one.do === 'finish') for (const pick of picks) model.end(pick);
        else model.giveBack(picks);
        return;
      }
      case 'cancel':
        await worqr.cancelTasks(queue, one.task);
        model.waiting = model.waiting.filter((waiting) => waiting !== one.task);
        model.marks.delete(one.task);
        return;
      case 'delete':
        await worqr.deleteQueue(queue);
        model.waiting = [];
        model.marks.clear();
        return;
      default: {
        const whom = instances[one.whom]!;
        if (one.do === 'stopWork') await whom.stopWork(queue);
        else await whom.failWorker();
        model.giveBack(model.held.filter((held) => held.by === one.whom));
        await ready(whom, queue);
      }
    }
  }

  it('concurrent: every accepted task is in exactly one place', { timeout: 600_000 }, async () => {
    const instances = await crew();
    let queues = 0;
    let serial = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60, size: 'max' }), async (steps) => {
        const queue = `p${++queues}`;
        const accepted: string[] = [];
        const finished: string[] = [];
        const taken: { id: string; task: string }[] = [];
        const removed = new Set<string>();
        for (const worqr of instances) await ready(worqr, queue);
        const act = async (one: Step): Promise<void> => {
          const worqr = instances[one.by]!;
          switch (one.do) {
            case 'enqueue': {
              const tasks = one.tasks.map((name) => `${name}${++serial}`);
              await worqr.enqueue(queue, tasks, one.unique);
              accepted.push(...tasks);
              return;
            }
            case 'dequeue': {
              const process = await worqr.dequeue(queue);
              if (process) taken.push(process);
              return;
            }
            case 'finish':
            case 'stop': {
              const pick = taken[(one.which[0] ?? 0) % Math.max(1, taken.length)];
              if (!pick) return;
              if (one.do === 'stop') return worqr.stopProcess(pick.id);
              await worqr.finishProcess(pick.id);
              finished.push(pick.task);
              return;
            }
            case 'cancel': {
              const victim = accepted.at(-1);
              if (victim === undefined) return;
              removed.add(victim);
              return worqr.cancelTasks(queue, victim);
            }
            case 'delete':
              return;
            default:
              await (one.do === 'stopWork' ? instances[one.whom]!.stopWork(queue) : instances[one.whom]!.failWorker());
              await ready(instances[one.whom]!, queue);
          }
        };
        for (let i = 0; i < steps.length; i += 10) {
          // Refusals (a stale process, a worker that was just failed) are expected; only the final state matters.
          await Promise.allSettled(steps.slice(i, i + 10).map(act));
          const waiting = await instances[0]!.getTasks(queue);
          expect(new Set(waiting).size, 'nothing waits twice').toBe(waiting.length);
          expect(new Set(finished).size, 'nothing is finished twice').toBe(finished.length);
          for (const name of accepted) {
            const processes = await instances[1]!.getMatchingProcesses(name);
            const places = Number(waiting.includes(name)) + processes.length + Number(finished.includes(name));
            if (removed.has(name)) expect(places, name).toBeLessThanOrEqual(1);
            else expect(places, name).toBe(1);
          }
        }
        for (const worqr of instances) {
          await ready(worqr, queue);
          await worqr.stopWork(queue);
        }
        await instances[0]!.deleteQueue(queue);
      }),
      { numRuns: Math.ceil(RUNS / 4) },
    );
  });
});

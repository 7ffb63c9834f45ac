import { expect } from 'vitest';
import type { Job } from '../../dist/job/job.js';
import type { Store } from '../../dist/store/store.js';
import { byHand } from './by-hand.js';
import { carryTo, inQueue } from './jobs.js';
import { Planned } from './planned.js';
import { Sides } from './sides.js';
import type { CarryStep, Step } from './steps.js';
import { Watched } from './watched.js';

/** Drives the model and the stores with the same steps and compares all that can be seen after each. */
export class SideBySide {
  readonly #sides: Sides;
  readonly #planned: Planned;
  readonly #watched: Watched;
  /** Where each source of jobs has stood, latest first. */
  readonly #marks: string[][] = [[''], ['']];

  constructor(queue: string, stores: Store[]) {
    this.#sides = new Sides(queue, stores);
    this.#planned = new Planned(this.#sides);
    this.#watched = new Watched(this.#sides);
  }

  get now(): number {
    return this.#sides.now;
  }

  async run(step: Step): Promise<void> {
    await this.#apply(step);
    await this.#compare(step);
  }

  /** At the end everything that is left must come out in the same order everywhere. */
  async drain(): Promise<void> {
    await this.run({ do: 'pause', paused: false });
    await this.run({ do: 'join', worker: 9 });
    await this.run({ do: 'wait', ms: 600 });
    for (let i = 0; i < 40; i++) await this.run({ do: 'claim', worker: 9, n: 3 });
    await this.#watched.readAll();
    await this.#planned.clear();
  }

  #apply(step: Step): Promise<void> {
    switch (step.do) {
      case 'schedule':
      case 'fire':
      case 'run now':
      case 'unschedule':
        return this.#planned.run(step);
      case 'record':
      case 'read':
        return this.#watched.run(step);
      case 'carry':
        return this.#carry(step);
      case 'unique':
      case 'take':
      case 'finish':
      case 'drop':
      case 'clear':
      case 'doom':
        return byHand(this.#sides, step);
      default:
        return inQueue(this.#sides, step);
    }
  }

  /** A relay that has not heard how far it came tries an old step again, with whatever jobs. */
  async #carry({ source, back, jobs }: CarryStep): Promise<void> {
    const marks = this.#marks[source]!;
    const name = `source ${source}`;
    const mark = { source: name, from: marks[back % marks.length]!, to: `${this.#sides.nextNumber()}` };
    const plans = jobs.map((plan) => this.#sides.newJob(plan));
    await carryTo(this.#sides, plans, mark);
    if (this.#sides.model.carried(name) === mark.to) marks.unshift(mark.to);
  }

  async #compare(step: Step): Promise<void> {
    const { queue, model, ids } = this.#sides;
    const after = `after ${JSON.stringify(step)}`;
    const wanted = {
      counts: model.count(),
      tasks: model.tasks.texts,
      jobs: [...ids].map((id) => picture(model.get(id))),
    };
    const seen = await this.#sides.each(async (store) => {
      const [counts, tasks, jobs] = await Promise.all([
        store.count(queue),
        store.raw!.tasks(queue),
        store.get(queue, [...ids]),
      ]);
      return { counts, tasks: tasks.map((task) => Buffer.from(task).toString()), jobs: jobs.map(picture) };
    });
    for (const one of seen) expect(one, after).toEqual(wanted);
  }
}

function picture(job: Job | undefined): unknown {
  if (!job) return undefined;
  const waits = job.state === 'scheduled' || job.state === 'blocked';
  return {
    id: job.id,
    payload: Buffer.from(job.payload).toString(),
    state: job.state,
    attempt: job.attempt,
    crashes: job.crashes,
    progress: job.progress,
    runAt: waits ? job.runAt : undefined,
  };
}

import { expect } from 'vitest';
import type { Job } from '../../dist/job/job.js';
import type { Store } from '../../dist/store/store.js';
import { EventSteps } from './events.js';
import { addFromSourceTo, inQueue } from './jobs.js';
import { rawTasks } from './raw-tasks.js';
import { ScheduleSteps } from './schedules.js';
import type { Servers } from './servers.js';
import { Sides } from './sides.js';
import type { SourceStepPlan, Step } from './steps.js';

/** Runs the same steps on the model and the stores, and compares everything observable after each. */
export class SideBySide {
  readonly #sides: Sides;
  readonly #scheduleSteps: ScheduleSteps;
  readonly #eventSteps: EventSteps;
  /** The positions of each source, latest first. */
  readonly #marks: string[][] = [[''], ['']];

  constructor(
    queue: string,
    stores: Store[],
    private readonly servers: Servers,
  ) {
    this.#sides = new Sides(queue, stores);
    this.#scheduleSteps = new ScheduleSteps(this.#sides);
    this.#eventSteps = new EventSteps(this.#sides);
  }

  get now(): number {
    return this.#sides.now;
  }

  async run(step: Step): Promise<void> {
    this.#sides.repliesLost = step.loseReply ?? false;
    if (step.loseReply) this.servers.loseReply();
    await this.#apply(step);
    await this.#compare(step);
  }

  /** At the end, everything that is left must be delivered in the same order by all stores. */
  async drain(): Promise<void> {
    await this.run({ do: 'pause', paused: false });
    await this.run({ do: 'join', worker: 9 });
    await this.run({ do: 'wait', ms: 600 });
    for (let i = 0; i < 40; i++) await this.run({ do: 'claim', worker: 9, n: 3 });
    await this.#eventSteps.readAll();
    await this.#scheduleSteps.clear();
  }

  #apply(step: Step): Promise<void> {
    switch (step.do) {
      case 'schedule':
      case 'fire':
      case 'run now':
      case 'unschedule':
        return this.#scheduleSteps.run(step);
      case 'record':
      case 'read':
        return this.#eventSteps.run(step);
      case 'add from source':
        return this.#carry(step);
      case 'flush scripts':
        return this.servers.flushScripts();
      case 'unique':
      case 'take':
      case 'finish':
      case 'drop':
      case 'clear':
      case 'expire session':
        return rawTasks(this.#sides, step);
      default:
        return inQueue(this.#sides, step);
    }
  }

  /** A relay that does not know how far it got repeats an old step, with arbitrary jobs. */
  async #carry({ source, back, jobs }: SourceStepPlan): Promise<void> {
    const marks = this.#marks[source]!;
    const name = `source ${source}`;
    const mark = { source: name, from: marks[back % marks.length]!, to: `${this.#sides.nextNumber()}` };
    const plans = jobs.map((plan) => this.#sides.newJob(plan));
    await addFromSourceTo(this.#sides, plans, mark);
    if (this.#sides.model.sourcePosition(name) === mark.to) marks.unshift(mark.to);
  }

  async #compare(step: Step): Promise<void> {
    const { queue, model, ids } = this.#sides;
    const after = `after ${JSON.stringify(step)}`;
    const wanted = {
      counts: model.count(),
      breaker: [model.breaker.set, model.breaker.state],
      tasks: model.tasks.texts,
      jobs: [...ids].map((id) => picture(model.get(id))),
    };
    const seen = await this.#sides.each(async (store) => {
      const [counts, tasks, jobs, settings] = await Promise.all([
        store.count(queue),
        store.raw!.tasks(queue),
        store.get(queue, [...ids]),
        store.settings(queue),
      ]);
      const breaker = [settings.breaker, settings.breakerState];
      return { counts, breaker, tasks: tasks.map((task) => Buffer.from(task).toString()), jobs: jobs.map(picture) };
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

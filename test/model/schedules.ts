import { defineSchedule, extraJob, firing } from '../../dist/engine/schedules/schedules.js';
import type { NewJob } from '../../dist/job/job.js';
import type { Schedule } from '../../dist/store/store.js';
import { addTo } from './jobs.js';
import type { Sides } from './sides.js';
import type { ScheduleStep } from './steps.js';

/** Schedules. Their names are global to the store, so those of one history start with the name of its queue. */
export class ScheduleSteps {
  /** Schedules as seen at any earlier time: a caller may fire an outdated one. */
  readonly #seen: Schedule[] = [];

  constructor(private readonly sides: Sides) {}

  async run(step: ScheduleStep): Promise<void> {
    await this.#apply(step);
    await this.#compare();
  }

  /** Removes all schedules: stores list the schedules of all queues. */
  async clear(): Promise<void> {
    for (const name of [0, 1]) await this.run({ do: 'unschedule', name });
  }

  async #apply(step: ScheduleStep): Promise<void> {
    const { schedules } = this.sides.model;
    if (step.do === 'schedule') return this.#put(step);
    if (step.do === 'unschedule') {
      const name = this.#name(step.name);
      return this.sides.agree(schedules.drop(name), (store) => store.schedules.remove(name));
    }
    const seen = this.#seen[this.#seen.length - 1 - (step.which % Math.max(1, this.#seen.length))];
    if (!seen) return;
    if (step.do === 'fire') return this.#fire(seen);
    if (seen.queue === this.sides.queue) await addTo(this.sides, this.#known([extraJob(seen, this.sides.now)]));
  }

  async #put({ name, every, all, elsewhere }: Extract<ScheduleStep, { do: 'schedule' }>): Promise<void> {
    const { now, model } = this.sides;
    const queue = elsewhere ? `${this.sides.queue}-elsewhere` : this.sides.queue;
    const catchUp = all ? 'all' : 'last';
    const { text, first } = defineSchedule(this.#name(name), queue, every, '"tick"', {}, { catchUp }, now);
    const schedule = { name: this.#name(name), queue, definition: text, since: now, next: first };
    const wanted = model.schedules.put(schedule);
    await this.sides.agree(wanted, (store) => store.schedules.put(schedule));
  }

  /** The model knows only one queue: a schedule of another queue ticks without a job. */
  async #fire(seen: Schedule): Promise<void> {
    const { now, model } = this.sides;
    const { jobs, ...ticks } = firing(seen, now);
    const here = { ...ticks, jobs: seen.queue === this.sides.queue ? this.#known(jobs) : [] };
    await this.sides.agree(model.schedules.fire(seen, here), (store) => store.schedules.fire(seen, here));
  }

  #known(jobs: NewJob[]): NewJob[] {
    for (const { id } of jobs) this.sides.ids.add(id);
    return jobs;
  }

  async #compare(): Promise<void> {
    const { all } = this.sides.model.schedules;
    this.#seen.push(...all);
    const prefix = this.#name('');
    await this.sides.agree(all, async (store) =>
      (await store.schedules.list()).filter(({ name }) => name.startsWith(prefix)),
    );
  }

  #name(which: number | ''): string {
    return `${this.sides.queue}/${which}`;
  }
}

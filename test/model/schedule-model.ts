import type { NewJob } from '../../dist/job/job.js';
import type { NewSchedule, Schedule } from '../../dist/store/store.js';

/** The part of the model for schedules. */
export class ScheduleModel {
  readonly #all = new Map<string, Schedule>();

  constructor(
    private readonly clock: () => number,
    private readonly add: (jobs: readonly NewJob[]) => void,
  ) {}

  get all(): Schedule[] {
    return [...this.#all.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  put(schedule: NewSchedule): Schedule {
    const known = this.#all.get(schedule.name);
    if (known?.queue !== schedule.queue || known.definition !== schedule.definition)
      this.#all.set(schedule.name, schedule);
    return this.#all.get(schedule.name)!;
  }

  /** A tick fires once, for a caller that still sees it as next, and not early (beyond a small clock skew). */
  fire(seen: Schedule, { jobs, next, last }: { jobs: readonly NewJob[]; next?: number; last?: number }): boolean {
    const known = this.#all.get(seen.name);
    const same = known?.queue === seen.queue && known.definition === seen.definition && known.next === seen.next;
    if (!same || seen.next! > this.clock() + 1_000) return false;
    this.#all.set(seen.name, { ...known, next, last });
    this.add(jobs);
    return true;
  }

  drop(name: string): boolean {
    return this.#all.delete(name);
  }
}

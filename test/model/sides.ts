import { expect } from 'vitest';
import type { Entry, NewJob } from '../../dist/job/job.js';
import { DEFAULT_SPEC } from '../../dist/job/spec.js';
import type { Store } from '../../dist/store/store.js';
import { Model } from './model.js';
import type { JobPlan } from './steps.js';

export const LEASE = 1_000;

/** The model and the stores, and the results of the steps so far. */
export class Sides {
  now = 1_800_000_000_000;
  readonly model: Model;
  /** Claimed entries per side, the model first. Settled ones stay, so that later picks are stale reports. */
  readonly leased: Entry[][] = [];
  /** Ids of all jobs that any step has tried to add. */
  readonly ids = new Set<string>();
  /** True during a step whose replies are lost: calls are repeated, and only what is stored has to agree. */
  repliesLost = false;
  #numbers = 0;

  constructor(
    readonly queue: string,
    readonly stores: readonly Store[],
  ) {
    this.model = new Model(queue, () => this.now);
  }

  each<T>(call: (store: Store, index: number) => Promise<T>): Promise<T[]> {
    return Promise.all(this.stores.map(call));
  }

  /** Every store has to return what the model returned, unless a reply was lost: then it may not know what its first try did. */
  async agree<T>(wanted: T, call: (store: Store, index: number) => Promise<T>): Promise<void> {
    for (const answer of await this.each(call)) if (!this.repliesLost) expect(answer).toEqual(wanted);
  }

  /** For unique names. */
  nextNumber(): number {
    this.#numbers += 1;
    return this.#numbers;
  }

  newJob(plan: JobPlan): NewJob {
    const id = `j${plan.id}`;
    this.ids.add(id);
    const modes = ['keep', 'extend', 'replace'] as const;
    const scopes = ['alive', 'waiting', 'window'] as const;
    const scope = plan.key % 3;
    const unique = {
      key: `k${plan.key % 2}`,
      scope: scopes[scope]!,
      ttl: scope === 2 ? 400 : 0,
      mode: modes[plan.mode]!,
    };
    const on = plan.on ? ('success' as const) : ('finished' as const);
    const needs = [...new Set(plan.needs)]
      .filter((up) => up !== plan.id)
      .map((up) => ({ queue: this.queue, id: `j${up}`, on }));
    const spec = {
      ...DEFAULT_SPEC,
      attempts: 2,
      reservation: plan.reservation,
      unique: plan.key > 0 ? unique : undefined,
      group: plan.group > 0 ? `g${plan.group}` : undefined,
      needs: needs.length > 0 ? needs : undefined,
    };
    return { id, payload: `"${id} ${this.nextNumber()}"`, priority: plan.priority, delay: plan.delay, spec };
  }
}

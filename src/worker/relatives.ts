import type { AddOptions } from '../engine/input/options.js';
import { CroreError } from '../errors.js';
import { type ChildList, NO_CHILDREN } from '../job/children.js';
import type { BatchCounts, JobRef, Need, NeedPolicy, State } from '../job/job.js';

/** A job to add as a child: its queue, its payload, and any option of `add`. */
export interface ChildItem extends Omit<AddOptions, 'parent' | 'batchPolicy'> {
  /** A name, or a queue of the same connection, whose schema, codec and limits then apply; default the queue of the parent. */
  queue?: string | { readonly name: string; addMany(items: readonly never[]): Promise<unknown> };
  payload: unknown;
  /** `success` (default): the parent is dead if this child does not succeed; `finished`: the parent goes on, whatever becomes of it. */
  on?: NeedPolicy;
}

/** A job that another one has waited for. */
export interface RelatedJob<R = unknown> extends JobRef {
  /** Undefined if somebody has removed its record. */
  state: State | undefined;
  result?: R;
  error?: string;
}

/** How a running job reaches the jobs it belongs with. */
export interface Relatives {
  /** Adds children; `first` is the number of the first of them. */
  addChildren(parent: JobRef, items: readonly ChildItem[], first: number): Promise<Need[]>;
  read(jobs: readonly JobRef[]): Promise<RelatedJob[]>;
  /** What is stored of the job itself. */
  load(job: JobRef): Promise<{ children?: ChildList; batch?: BatchCounts }>;
}

/** The children of a job during one of its runs. */
export class ChildrenOfRun {
  readonly #added: Need[] = [];
  #known: Promise<ChildList> | undefined;
  #given = 0;
  #list: ChildList | undefined;

  constructor(
    private readonly parent: JobRef,
    private readonly relatives: Relatives,
  ) {}

  async add(items: readonly ChildItem[]): Promise<JobRef[]> {
    if (!Array.isArray(items)) throw new CroreError('BAD_OPTION', 'addChildren takes an array');
    const { first, children } = await this.#load();
    const number = first + children.length + this.#given;
    this.#given += items.length;
    const added = await this.relatives.addChildren(this.parent, items as readonly ChildItem[], number);
    this.#added.push(...added);
    this.#list = { first, children: [...children, ...this.#added] };
    return added.map(({ queue, id }) => ({ queue, id }));
  }

  /** Those that the job has waited for, in the order in which they were added. */
  async results(): Promise<RelatedJob[]> {
    return this.relatives.read((await this.#load()).children);
  }

  /** What to wait for. */
  get list(): ChildList {
    if (!this.#list)
      throw new CroreError(
        'BAD_OPTION',
        'waitForChildren: no children were added in this run: there is nothing to wait for',
      );
    return this.#list;
  }

  #load(): Promise<ChildList> {
    this.#known ??= this.relatives.load(this.parent).then(({ children }) => children ?? NO_CHILDREN);
    return this.#known;
  }
}

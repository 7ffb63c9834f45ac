import type { Need } from './job.js';

/** The children that a job waits, or has waited, for. */
export interface ChildList {
  /** The number of the first of them: ids of children are numbered on when a job is run again. */
  first: number;
  children: Need[];
}

export const NO_CHILDREN: ChildList = Object.freeze({ first: 0, children: [] });

/** The id of a child that was added without one. The same code adds the same ids after a crash, so nothing is added twice. */
export function childId(parent: string, number: number): string {
  return `${parent}.${number}`;
}

/** The stored form: number of the first child, how many there are, and the children as JSON. */
export function writeChildren({ first, children }: ChildList): string {
  return `${first} ${children.length} ${JSON.stringify(children)}`;
}

export function readChildren(text: string): ChildList {
  const [first] = text.split(' ', 1);
  const json = text.slice(text.indexOf('['));
  return { first: Number(first), children: JSON.parse(json) as Need[] };
}

/** When a job is run again from its beginning, its children are new ones with new ids. */
export function restartChildren(text: string): string {
  const { first, children } = readChildren(text);
  return writeChildren({ first: first + children.length, children: [] });
}

import type { ComponentChildren } from 'preact';
import { Scroll } from './scroll.js';

/** The head of a column: its title, its class, and what it means where the title does not say. False: left out. */
export type Head = readonly [title: ComponentChildren, kind?: string, hint?: string] | false;

/** The head of the column with the buttons of a row. */
export const ACTIONS: Head = [<span class="off-screen">Actions</span>, 'actions'];

interface TableProps {
  /** For screen readers: what the table lists. */
  label: string;
  class: string;
  heads: readonly Head[];
  /** Its rows. */
  children: ComponentChildren;
}

/** A table that scrolls in its own place. */
export function Table({ label, class: name, heads, children }: TableProps) {
  const shown = heads.filter((head) => head !== false);
  return (
    <Scroll class="table-place card" label={`${label}, a table`}>
      <table class={`table ${name}`}>
        <thead>
          <tr>
            {shown.map(([title, kind, hint], i) => (
              <th key={typeof title === 'string' ? title : i} scope="col" class={kind} title={hint}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </Scroll>
  );
}

import { href } from '../lib/router.js';

/** Text of users, in one line: cut by its width, isolated from the direction of the text around it, whole in its title. */
export function Name({ text, mono = false }: { text: string; mono?: boolean }) {
  return (
    <bdi class={mono ? 'name mono' : 'name'} title={text}>
      {text === '' ? '(empty)' : text}
    </bdi>
  );
}

/** Attributes that make a link one of the rows that `j` and `k` move through. */
export const ROW = { 'data-row': '' };

export function QueueLink({ name, row = false }: { name: string; row?: boolean }) {
  return (
    <a class="name-link" href={href('queue', { name })} {...(row ? ROW : {})}>
      <Name text={name} />
    </a>
  );
}

export function JobLink({ queue, id, row = false }: { queue: string; id: string; row?: boolean }) {
  return (
    <a class="name-link" href={href('job', { queue, id })} {...(row ? ROW : {})}>
      <Name text={id} mono />
    </a>
  );
}

import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

interface PageProps {
  /** Also the title of the document. */
  title: string;
  /** What stands beside the title: badges, say. */
  beside?: ComponentChildren;
  actions?: ComponentChildren;
  /** Links to where this page belongs. */
  trail?: ComponentChildren;
  children?: ComponentChildren;
}

/** The frame of a page: its trail, its heading with actions, and its content. */
export function Page({ title, beside, actions, trail, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} · Crore`;
  }, [title]);
  return (
    <div class="page">
      {trail && <p class="trail">{trail}</p>}
      <div class="page-head">
        <h1 title={title}>
          <bdi>{title}</bdi>
        </h1>
        {beside}
        <div class="page-actions">{actions}</div>
      </div>
      {children}
    </div>
  );
}

/** A part of a page with a heading of its own. */
export function Section(props: { title: string; beside?: ComponentChildren; children?: ComponentChildren }) {
  return (
    <section class="section">
      <div class="section-head">
        <h2>{props.title}</h2>
        {props.beside}
      </div>
      {props.children}
    </section>
  );
}

import type { ComponentChildren } from 'preact';

/** A place that scrolls by itself, so that the page never does sideways; it can be reached and scrolled by keyboard. */
export function Scroll(props: { label: string; class: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section class={props.class} tabIndex={0} aria-label={props.label}>
      {props.children}
    </section>
  );
}

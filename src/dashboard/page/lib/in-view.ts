import type { Ref } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

/** Scrolls a bar sideways to what is current in it, whenever that changes: on a phone it may be out of sight. */
export function useCurrentInView<E extends HTMLElement>(current: unknown): Ref<E> {
  const bar = useRef<E>(null);
  useEffect(() => {
    const place = bar.current;
    const shown = place?.querySelector<HTMLElement>('[aria-current]');
    if (place && shown)
      place.scrollLeft = shown.offsetLeft - place.offsetLeft - (place.clientWidth - shown.clientWidth) / 2;
  }, [current]);
  return bar;
}

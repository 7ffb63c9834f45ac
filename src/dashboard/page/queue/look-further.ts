import { useEffect, useRef } from 'preact/hooks';
import type { JobsView } from '../../api.js';
import { hrefWith, replace } from '../lib/router.js';

/** Pages without a match that are passed over before somebody is asked to go on. */
const MOST_PAGES = 100;

/**
 * A page of a filtered list may be empty although there are matches further on: then the next one is read at once. True while
 * it does so.
 */
export function useLookFurther(content: JobsView | undefined, filter: string): boolean {
  const looked = useRef({ filter, pages: 0 });
  if (looked.current.filter !== filter) looked.current = { filter, pages: 0 };
  const cursor = content?.jobs.length === 0 && looked.current.pages < MOST_PAGES ? content.cursor : undefined;
  useEffect(() => {
    if (cursor === undefined) return;
    looked.current.pages += 1;
    replace(hrefWith({ cursor }));
  }, [cursor]);
  return cursor !== undefined;
}

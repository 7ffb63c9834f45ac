/** Views that are read now and then instead of followed, because they change slowly. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ViewName, Views } from '../../api.js';
import { get } from './api.js';
import { href } from './router.js';

/** Reads a view now and every `everyMs` while the page is visible. Failures leave the last content: the next read may succeed. */
export function useRead<N extends ViewName>(
  name: N,
  parameters: Views[N]['parameters'],
  everyMs: number,
): Views[N]['content'] | undefined {
  const [content, setContent] = useState<Views[N]['content']>();
  const wanted = useRef(parameters);
  wanted.current = parameters;
  useEffect(() => {
    const stop = new AbortController();
    const read = () => {
      if (!document.hidden) get(name, wanted.current, stop.signal).then(setContent, ignore);
    };
    read();
    const timer = setInterval(read, everyMs);
    document.addEventListener('visibilitychange', read, { signal: stop.signal });
    return () => {
      clearInterval(timer);
      stop.abort();
    };
  }, [href(name, parameters), everyMs]);
  return content;
}

function ignore(): void {}

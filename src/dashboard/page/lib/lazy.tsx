/** Pages that are loaded when they are opened for the first time. */
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Empty } from '../components/empty.js';
import { Skeleton } from '../components/skeleton.js';

/** A component without props from a file of its own. */
export function lazy<Module>(load: () => Promise<Module>, pick: (module: Module) => ComponentType): ComponentType {
  let loaded: ComponentType | undefined;
  return function Lazy() {
    const [failed, setFailed] = useState(false);
    const [, setReady] = useState(loaded !== undefined);
    useEffect(() => {
      if (loaded) return;
      load().then(
        (module) => {
          loaded = pick(module);
          setReady(true);
        },
        () => setFailed(true),
      );
    }, []);
    const Loaded = loaded;
    if (Loaded) return <Loaded />;
    return failed ? <NotLoaded /> : <Skeleton rows={8} />;
  };
}

function NotLoaded() {
  return (
    <Empty title="This part of the page could not be loaded">
      <p>The server may have been updated or stopped.</p>
      <button type="button" class="button" onClick={() => window.location.reload()}>
        Load the page again
      </button>
    </Empty>
  );
}

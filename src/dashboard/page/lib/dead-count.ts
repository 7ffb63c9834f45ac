/** How many dead jobs there are, for the navigation: from whichever view told it last. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { useRead } from './read.js';

export const deadCount = signal<number | undefined>(undefined);
const EVERY_MS = 30_000;

export function useDeadCount(): number | undefined {
  const overview = useRead('overview', {}, EVERY_MS);
  useTellDeadCount(overview?.counts.dead);
  return deadCount.value;
}

export function useTellDeadCount(dead: number | undefined): void {
  useEffect(() => {
    if (dead !== undefined) deadCount.value = dead;
  }, [dead]);
}

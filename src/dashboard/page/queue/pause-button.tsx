import { actAndSay } from '../lib/toast.js';

/** Resuming also closes an open breaker. */
export function PauseButton({ queue, paused, broken }: { queue: string; paused: boolean; broken: boolean }) {
  const toggle = () =>
    actAndSay({ action: paused ? 'resume' : 'pause', queue }, () =>
      paused ? `Resumed ${queue}` : `Paused ${queue}: what runs goes on, nothing new starts`,
    );
  if (broken && !paused) {
    const close = () => actAndSay({ action: 'resume', queue }, () => `Closed the breaker of ${queue}`);
    return (
      <button type="button" class="button primary" onClick={close}>
        Close breaker
      </button>
    );
  }
  return (
    <button type="button" class={paused ? 'button primary' : 'button'} onClick={toggle}>
      {paused ? 'Resume' : 'Pause'}
    </button>
  );
}

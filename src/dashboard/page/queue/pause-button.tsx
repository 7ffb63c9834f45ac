import { actAndSay } from '../lib/toast.js';

export function PauseButton({ queue, paused }: { queue: string; paused: boolean }) {
  const toggle = () =>
    actAndSay({ action: paused ? 'resume' : 'pause', queue }, () =>
      paused ? `Resumed ${queue}` : `Paused ${queue}: what runs goes on, nothing new starts`,
    );
  return (
    <button type="button" class={paused ? 'button primary' : 'button'} onClick={toggle}>
      {paused ? 'Resume' : 'Pause'}
    </button>
  );
}

import { dismiss, toasts } from '../lib/toast.js';

/** The messages of the moment. The region is always there, so that screen readers hear what comes into it. */
export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, failed }) => (
        <div key={id} class={failed ? 'toast failed' : 'toast'}>
          <span class="toast-text">
            {failed && <strong>Failed: </strong>}
            {text}
          </span>
          <button type="button" class="button small" onClick={() => dismiss(id)}>
            Dismiss
          </button>
        </div>
      ))}
    </div>
  );
}

import { session } from '../lib/api.js';
import { helpOpen, PAGES } from '../lib/keys.js';
import { Dialog } from './dialog.js';

const KEYS: [keys: string[], does: string][] = [
  [['/'], 'Search or filter'],
  [['g', 'j'], 'Find a job by its id'],
  [['j'], 'Next row'],
  [['k'], 'Previous row'],
  [['Enter'], 'Open the row'],
  ...Object.entries(PAGES).map(([key, page]): [string[], string] => [['g', key], page.title]),
  [['?'], 'This help'],
  [['Esc'], 'Close, or leave a field'],
];

/** The keys, for those who press `?`. */
export function Help() {
  if (!helpOpen.value) return null;
  return (
    <Dialog title="Keys" onClose={close}>
      <dl class="keys">
        {KEYS.map(([keys, does]) => (
          <div key={does}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <div class="dialog-buttons">
        <span class="muted">
          Crore {session.value?.version} on {session.value?.store}
        </span>
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

function close(): void {
  helpOpen.value = false;
}

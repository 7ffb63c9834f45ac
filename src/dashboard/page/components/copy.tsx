import { useState } from 'preact/hooks';

/** A button that puts a text on the clipboard. */
export function CopyButton({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [done, setDone] = useState<'yes' | 'no'>();
  const copy = async () => {
    setDone((await toClipboard(text)) ? 'yes' : 'no');
    setTimeout(() => setDone(undefined), 2_000);
  };
  return (
    <button type="button" class="button small copy" onClick={copy}>
      <span aria-live="polite">{done === 'yes' ? 'Copied' : done === 'no' ? 'Not allowed' : label}</span>
    </button>
  );
}

/** A command line with a button to copy it. */
export function Command({ line }: { line: string }) {
  return (
    <div class="command">
      <code>{line}</code>
      <CopyButton text={line} />
    </div>
  );
}

async function toClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/** Pages that are served without TLS have no clipboard of their own. */
function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'off-screen';
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

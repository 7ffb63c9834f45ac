import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { Dialog } from './dialog.js';

export interface Question {
  title: string;
  text?: string;
  /** What the button says: the verb of the title. */
  verb: string;
  danger?: boolean;
  /** What has to be typed before the button works. */
  typed?: string;
  /** The label of a field whose text is the answer. */
  field?: string;
}

const asked = signal<(Question & { answer: (yes: boolean, text?: string) => void }) | undefined>(undefined);

/** Asks before something is done; false if somebody thought better of it. */
export function confirm(question: Question): Promise<boolean> {
  asked.value?.answer(false);
  return new Promise((resolve) => {
    const answer = (yes: boolean) => {
      asked.value = undefined;
      resolve(yes);
    };
    asked.value = { ...question, answer };
  });
}

/** Asks for a text; undefined if somebody thought better of it. */
export function ask(question: Question & { field: string }): Promise<string | undefined> {
  asked.value?.answer(false);
  return new Promise((resolve) => {
    const answer = (yes: boolean, text = '') => {
      asked.value = undefined;
      resolve(yes ? text : undefined);
    };
    asked.value = { ...question, answer };
  });
}

/** Where questions appear; once in the page. */
export function ConfirmPlace() {
  const question = asked.value;
  if (!question) return null;
  return <Asked key={question.title} question={question} answer={question.answer} />;
}

function Asked({ question, answer }: { question: Question; answer: (yes: boolean, text?: string) => void }) {
  const [typed, setTyped] = useState('');
  const { title, text, verb, danger } = question;
  const ready = question.field
    ? typed.trim() !== ''
    : question.typed === undefined || typed === typable(question.typed);
  const onSubmit = (event: Event) => {
    event.preventDefault();
    if (ready) answer(true, typed.trim());
  };
  return (
    <Dialog title={title} onClose={() => answer(false)}>
      <form onSubmit={onSubmit}>
        {text && <p>{text}</p>}
        {question.typed !== undefined && (
          <label class="field">
            <span>
              Type <bdi class="mono strong">{question.typed}</bdi> to confirm
            </span>
            <input class="input" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
          </label>
        )}
        {question.field !== undefined && (
          <label class="field">
            <span>{question.field}</span>
            <input class="input" value={typed} onInput={(event) => setTyped(event.currentTarget.value)} />
          </label>
        )}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={() => answer(false)}>
            Keep as is
          </button>
          <button type="submit" class={danger ? 'button danger' : 'button primary'} disabled={!ready}>
            {verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** A field of one line cannot contain the line breaks that a name may have. */
function typable(text: string): string {
  return text.replace(/[\r\n]/g, '');
}

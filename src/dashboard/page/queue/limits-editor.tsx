import { useState } from 'preact/hooks';
import type { QueueLimits } from '../../../store/store.js';
import { limitsText } from '../components/limits.js';
import { actAndSay } from '../lib/toast.js';
import { type LimitTexts, limitsOf, textsOf } from './limits-form.js';

/** Changes the limits of a queue as a whole; the form keeps what is being typed while the page lives on. */
export function LimitsEditor({ queue, limits }: { queue: string; limits: QueueLimits }) {
  const [open, setOpen] = useState(false);
  return (
    <details class="disclosure" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Limits: <span class="muted">{limitsText(limits) || 'none'}</span>
      </summary>
      {open && <Form queue={queue} limits={limits} close={() => setOpen(false)} />}
    </details>
  );
}

function Form({ queue, limits, close }: { queue: string; limits: QueueLimits; close: () => void }) {
  const [whole, setWhole] = useState(textsOf(limits));
  const [group, setGroup] = useState(textsOf(limits.group));
  const [ordered, setOrdered] = useState(limits.group?.ordered ?? false);
  const [problem, setProblem] = useState('');
  const save = async (next: QueueLimits | string) => {
    setProblem(typeof next === 'string' ? next : '');
    if (typeof next === 'string') return;
    const result = await actAndSay({ action: 'limits', queue, limits: next }, () => `Changed the limits of ${queue}`);
    if (result) close();
  };
  const onSubmit = (event: Event) => {
    event.preventDefault();
    void save(limitsOf(whole, group, ordered));
  };
  return (
    <form class="disclosure-body" onSubmit={onSubmit}>
      <p class="muted">They apply to all workers together. An empty field means no limit.</p>
      <Part legend="Whole queue" texts={whole} onChange={setWhole} />
      <Part legend="Each group" texts={group} onChange={setGroup} />
      <label class="check">
        <input type="checkbox" checked={ordered} onChange={(event) => setOrdered(event.currentTarget.checked)} />
        In order: the next job of a group starts when the one before has ended
      </label>
      <p class="field-error" role="alert">
        {problem}
      </p>
      <div class="buttons">
        <button type="submit" class="button primary">
          Save limits
        </button>
        <button type="button" class="button" onClick={() => void save({})}>
          Remove all limits
        </button>
      </div>
    </form>
  );
}

interface PartProps {
  legend: string;
  texts: LimitTexts;
  onChange: (texts: LimitTexts) => void;
}

function Part({ legend, texts, onChange }: PartProps) {
  const field = (name: keyof LimitTexts, label: string, hint: string) => (
    <label class="field">
      <span>{label}</span>
      <input
        class="input"
        value={texts[name]}
        placeholder={hint}
        inputMode={name === 'per' ? 'text' : 'numeric'}
        onInput={(event) => onChange({ ...texts, [name]: event.currentTarget.value })}
      />
    </label>
  );
  return (
    <fieldset class="limit-fields">
      <legend class="strong">{legend}</legend>
      {field('concurrency', 'At once', '10')}
      {field('count', 'Starts', '100')}
      {field('per', 'within', '1m')}
    </fieldset>
  );
}

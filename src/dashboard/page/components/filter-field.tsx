import { useEffect, useRef, useState } from 'preact/hooks';
import { hrefWith, location, replace } from '../lib/router.js';

const DEBOUNCE_MS = 250;

interface FilterFieldProps {
  /** The parameter in the address that it changes, and the one of the page to go back to the first. */
  parameter: string;
  resets: string;
  label: string;
  placeholder?: string;
  /** The field that `/` goes to. */
  main?: boolean;
}

/** A field that filters while somebody types; the filter is in the address. */
export function FilterField({ parameter, resets, label, placeholder, main = false }: FilterFieldProps) {
  const [text, setText] = useFilter(parameter, resets);
  return (
    <label class="field">
      <span>{label}</span>
      <input
        class="input"
        type="search"
        value={text}
        placeholder={placeholder}
        onInput={(event) => setText(event.currentTarget.value)}
        {...(main ? { 'data-search': '' } : {})}
      />
    </label>
  );
}

/** The same for a time, which is in the address as ISO. */
export function TimeField({ parameter, resets, label }: Omit<FilterFieldProps, 'placeholder' | 'main'>) {
  const [text, setText] = useFilter(parameter, resets);
  return (
    <label class="field">
      <span>{label}</span>
      <input
        class="input"
        type="datetime-local"
        value={localTime(text)}
        onInput={(event) => setText(isoTime(event.currentTarget.value))}
      />
    </label>
  );
}

/** The text of a field that goes into the address a moment after the last change. */
function useFilter(parameter: string, resets: string): [string, (value: string) => void] {
  const wanted = location.value.query.get(parameter) ?? '';
  const [text, setText] = useState(wanted);
  const sent = useRef(wanted);
  const timer = useRef(0);
  useEffect(() => {
    // The address changed by other means: a link, or Back.
    if (wanted !== sent.current) setText(wanted);
    sent.current = wanted;
  }, [wanted]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const change = (value: string) => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      sent.current = value;
      replace(hrefWith({ [parameter]: value, [resets]: undefined }));
    }, DEBOUNCE_MS);
  };
  return [text, change];
}

function isoTime(local: string): string {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? '' : time.toISOString();
}

/** The form that the browser's field wants, in the zone of who looks. */
function localTime(iso: string): string {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return '';
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

// Opens a connection whose calls are written to a history file.
import { Crore } from '../../../dist/crore.js';
import { openStore } from '../../../dist/store/open.js';
import { Recorder, recorded } from './recorder.mjs';

export async function openRecorded({ dir, name, url, timeout = 5_000, sample = 0 }) {
  const recorder = new Recorder(dir, name);
  const store = recorded(await openStore(url, { timeout }), recorder);
  const crore = new Crore(store, { url, timeout, maxPayload: 1_048_576, onError: () => {}, random: undefined });
  if (sample > 0) recorder.sample(sample);
  return { crore, recorder };
}

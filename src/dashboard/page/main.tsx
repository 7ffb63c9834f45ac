import { render } from 'preact';
import { App } from './app.js';
import { ApiFailure, readSession, session } from './lib/api.js';
import { startKeys } from './lib/keys.js';
import { startRouter } from './lib/router.js';
import { sayFailure } from './lib/toast.js';
import './lib/theme.js';
import './style.css';

const RETRY_MS = 3_000;

startRouter();
startKeys();
render(<App />, document.getElementById('app')!);
void start();

/** Nothing is shown before it is known who looks; a log-in goes on from here by itself. */
async function start(): Promise<void> {
  let told = false;
  while (!session.value) {
    try {
      await readSession();
    } catch (error) {
      if (error instanceof ApiFailure && error.status === 401) return;
      if (!told) sayFailure(error instanceof Error ? error.message : String(error));
      told = true;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

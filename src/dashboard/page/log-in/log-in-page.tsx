import { useEffect, useState } from 'preact/hooks';
import { ApiFailure, logIn, readSession } from '../lib/api.js';
import { location, replace } from '../lib/router.js';

export function LogInPage() {
  const [problem, setProblem] = useState('');
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = 'Log in · Crore';
  }, []);
  const onSubmit = async (event: SubmitEvent) => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem('token') as HTMLInputElement;
    setBusy(true);
    setProblem(await tryToken(field.value));
    setBusy(false);
    field.select();
  };
  return (
    <main id="main" class="log-in">
      <form class="card log-in-card" onSubmit={onSubmit}>
        <h1>
          <span class="logo">
            cr<span>o</span>re
          </span>
        </h1>
        {/* Password managers keep a password only together with a name. */}
        <input
          class="off-screen"
          name="username"
          autocomplete="username"
          value="crore"
          tabIndex={-1}
          aria-hidden="true"
        />
        <label class="field">
          <span>Token</span>
          <input
            class="input"
            type="password"
            name="token"
            autocomplete="current-password"
            required
            aria-invalid={problem !== ''}
            aria-describedby="log-in-problem"
          />
        </label>
        <p id="log-in-problem" class="field-error" role="alert">
          {problem}
        </p>
        <button type="submit" class="button primary" disabled={busy}>
          {busy ? 'Logging in …' : 'Log in'}
        </button>
        <p class="muted">The token is the one that the server was started with.</p>
      </form>
    </main>
  );
}

/** Goes on to where somebody wanted to go, or returns what is wrong. */
async function tryToken(token: string): Promise<string> {
  try {
    await logIn(token);
    await readSession();
    replace(wantedPage());
    return '';
  } catch (error) {
    if (error instanceof ApiFailure && error.status === 401) return 'Wrong token.';
    return error instanceof Error ? error.message : String(error);
  }
}

/** Only an address of this page, whatever the parameter says. */
function wantedPage(): string {
  const next = location.value.query.get('next') ?? './';
  const url = new URL(next, document.baseURI);
  const base = new URL(document.baseURI);
  const ours = url.origin === base.origin && url.pathname.startsWith(base.pathname);
  return ours && url.pathname !== `${base.pathname}login` ? url.href : './';
}

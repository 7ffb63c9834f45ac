/** Light or dark: as the system says, or as somebody chose. */
import { effect, signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
export const THEMES: readonly Theme[] = ['system', 'light', 'dark'];
const KEY = 'crore-theme';

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');
const system = signal(systemIsDark.matches);
export const theme = signal<Theme>(stored());
/** What is on the screen: charts draw themselves anew when it changes. */
export const dark = signal(false);

systemIsDark.addEventListener('change', ({ matches }) => {
  system.value = matches;
});

effect(() => {
  dark.value = theme.value === 'dark' || (theme.value === 'system' && system.value);
  document.documentElement.dataset.theme = dark.value ? 'dark' : 'light';
});

export function choose(next: Theme): void {
  theme.value = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY) as Theme | null;
    return value && THEMES.includes(value) ? value : 'system';
  } catch {
    return 'system';
  }
}

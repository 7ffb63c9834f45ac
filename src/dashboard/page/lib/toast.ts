/** Short messages about what was done; those about failures stay until they are dismissed. */
import { signal } from '@preact/signals';
import type { Action, ActionResult } from '../../api.js';
import { act } from './api.js';

export interface Toast {
  id: number;
  text: string;
  failed: boolean;
}

export const toasts = signal<readonly Toast[]>([]);
const SHOWN_MS = 6_000;
let last = 0;

export function say(text: string): void {
  const id = add(text, false);
  setTimeout(() => dismiss(id), SHOWN_MS);
}

export function sayFailure(text: string): void {
  add(text, true);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

function add(text: string, failed: boolean): number {
  last += 1;
  toasts.value = [...toasts.value, { id: last, text, failed }].slice(-5);
  return last;
}

/** Does something and says what came of it; the result is undefined if it failed. */
export async function actAndSay(
  action: Action,
  success: (result: ActionResult) => string,
): Promise<ActionResult | undefined> {
  try {
    const result = await act(action);
    say(success(result));
    return result;
  } catch (error) {
    sayFailure(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

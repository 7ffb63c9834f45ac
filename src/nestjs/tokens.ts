/** The token of the connection. */
export const CRORE = Symbol('Crore');

/** The token of a queue, for tests that replace it and for `inject` of a factory. */
export function queueToken(name: string): string {
  return `crore:queue:${name}`;
}

/** The context of a trace, in the form of W3C: headers of jobs, of requests, and variables of processes carry it. */

const TRACEPARENT = /^[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const LONGEST_STATE = 512;

export type TraceContext = { traceparent: string; tracestate?: string };

/** A context, if it is a valid one. */
export function traceContext(
  parent: string | null | undefined,
  state: string | null | undefined,
): TraceContext | undefined {
  if (!parent || !TRACEPARENT.test(parent)) return undefined;
  const isUsable = state && state.length <= LONGEST_STATE && /^[\x20-\x7e]+$/.test(state);
  return isUsable ? { traceparent: parent, tracestate: state } : { traceparent: parent };
}

/** The context of this process, which its parent may have set. */
export function contextOf(env: Readonly<Record<string, string | undefined>>): TraceContext | undefined {
  return traceContext(env.TRACEPARENT, env.TRACESTATE);
}

/** Variables for a child process. */
export function contextVariables(headers: Readonly<Record<string, string>>): Record<string, string> {
  const context = traceContext(headers.traceparent, headers.tracestate);
  if (!context) return {};
  const { traceparent, tracestate } = context;
  return tracestate === undefined ? { TRACEPARENT: traceparent } : { TRACEPARENT: traceparent, TRACESTATE: tracestate };
}

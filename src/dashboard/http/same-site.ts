/** The header that every change carries: pages of other sites cannot set it without being allowed to. */
const OWN_HEADER = 'x-crore-dashboard';

/** Why a request that changes something is refused: it must come from the page itself. Undefined if it does. */
export function foreignRequest(request: Request): string | undefined {
  const { headers } = request;
  if (headers.get(OWN_HEADER) === null) return `the header ${OWN_HEADER} is missing`;
  const type = (headers.get('content-type') ?? '').split(';')[0]!.trim().toLowerCase();
  if (type !== 'application/json') return 'the content type must be application/json';
  const site = headers.get('sec-fetch-site');
  if (site !== null && site !== 'same-origin' && site !== 'none') return 'the request comes from another site';
  const origin = headers.get('origin');
  if (origin !== null && origin.replace(/^https?:\/\//, '') !== hostOf(request))
    return 'the Origin header names another site';
  return undefined;
}

function hostOf(request: Request): string {
  return request.headers.get('host') ?? new URL(request.url).host;
}

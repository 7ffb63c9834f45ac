/** The first alternative is a user of PostgreSQL and nothing that could be a password, which is usual there. */
const IN_TEXT = /\b(postgres(?:ql)?:\/\/[\w.-]+@)(?=[^\s@]*(?:\s|$))|(\w:\/\/)([^\s:@/]*:)?\S*@/gi;
const PARAMETER = /\b(\w*(?:password|token|auth|secret))=[^&\s'"]*/gi;
/** A URL up to its last `@`; scheme and user may be shown. File URLs contain no passwords. */
const LOGIN = /^(?!sqlite:(?!\/\/[^/]*@))([a-z][\w+.-]*(?::\/{0,3}|\/\/))?([^\s:@/]*:)?.+@/is;
/** PostgreSQL with a user only: the password is elsewhere, or not needed. */
const USER_ONLY = /^postgres(?:ql)?:\/\/[\w.%-]+@[^@]*$/i;
/** No `@`, and the host is followed by something that is not a port: possibly a misplaced password. */
const MISPLACED = /^(?!sqlite:)([a-z][\w+.-]*:\/{0,3}[^\s:@/?,[]*:)(?!\d{1,5}(?:[,/?]|$))[^/?@]+/i;

/**
 * Hides passwords and tokens in all URLs of a text; redacts too much rather than too little, because a password may contain an
 * `@`.
 */
export function redact(text: string): string {
  return text
    .replace(IN_TEXT, (_all, plain: string | undefined, scheme: string, user = '') => plain ?? `${scheme}${user}***@`)
    .replace(PARAMETER, '$1=***');
}

/** The same for a text that should be a single URL, possibly a malformed one. */
export function redactUrl(url: string): string {
  if (USER_ONLY.test(url)) return url.replace(PARAMETER, '$1=***');
  if (LOGIN.test(url))
    return url.replace(LOGIN, (_all, scheme = '', user = '') => `${scheme}${user}***@`).replace(PARAMETER, '$1=***');
  return url.replace(MISPLACED, '$1***').replace(PARAMETER, '$1=***');
}

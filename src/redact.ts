const IN_TEXT = /(\w:\/\/)([^\s:@/]*:)?\S*@/g;
const PARAMETER = /\b(\w*(?:password|token|auth|secret))=[^&\s'"]*/gi;
/** A URL up to its last `@`: scheme and user may be shown. Schemes of files hold no passwords. */
const LOGIN = /^(?!sqlite:(?!\/\/[^/]*@))([a-z][\w+.-]*(?::\/{0,3}|\/\/))?([^\s:@/]*:)?.+@/is;
/** No `@`, and behind a host something that is not a port: a password in the wrong place, perhaps. */
const MISPLACED = /^(?!sqlite:)([a-z][\w+.-]*:\/{0,3}[^\s:@/?,[]*:)(?!\d{1,5}(?:[,/?]|$))[^/?@]+/i;

/** Hides passwords and tokens wherever URLs stand in a text; rather too much than too little, for a password may hold an `@`. */
export function redact(text: string): string {
  return text
    .replace(IN_TEXT, (_all, scheme: string, user = '') => `${scheme}${user}***@`)
    .replace(PARAMETER, '$1=***');
}

/** The same for what should be one URL, and may be a malformed one. */
export function redactUrl(url: string): string {
  if (LOGIN.test(url))
    return url.replace(LOGIN, (_all, scheme = '', user = '') => `${scheme}${user}***@`).replace(PARAMETER, '$1=***');
  return url.replace(MISPLACED, '$1***').replace(PARAMETER, '$1=***');
}

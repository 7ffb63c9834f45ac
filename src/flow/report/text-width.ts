const ASCII = /^[\x20-\x7e]*$/;
/** Asks for the wide form of the character before it. */
const WIDE_FORM = 0xfe0f;
/** First and last code points of scripts whose characters take two columns. */
const WIDE = [
  [0x1100, 0x115f],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe10, 0xfe19],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x16fe0, 0x18aff],
  [0x1b000, 0x1b2ff],
  [0x1f200, 0x1f2ff],
  [0x20000, 0x3fffd],
] as const;

/** How many columns of a terminal the text takes. Joined emoji count as their parts: rather too many than too few. */
export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const char of text) width += charWidth(char);
  return width;
}

/** The start of the text that fits into so many columns; `…` says that something is missing. */
export function clip(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text;
  let width = 1;
  let kept = '';
  for (const char of text) {
    width += charWidth(char);
    if (width > columns) break;
    kept += char;
  }
  return columns < 1 ? '' : `${kept}…`;
}

/** The text with a visible sign for characters that would move the cursor or that XML does not allow. */
export function printable(text: string): string {
  return ASCII.test(text) ? text : text.replace(/[\p{Cc}\p{Cs}\ufffe\uffff]/gu, '\ufffd');
}

/** V8 collects the characters of these expressions when it meets them: at the top of the file, 0.2 ms of a start. */
function charWidth(char: string): number {
  const point = char.codePointAt(0)!;
  if (point < 0x300) return 1;
  if (point === WIDE_FORM) return 1;
  // Marks that join the character before them, and characters without a glyph.
  if (/^[\p{Mn}\p{Me}\p{Cf}]$/u.test(char)) return 0;
  return /^\p{Emoji_Presentation}$/u.test(char) || WIDE.some(([first, last]) => point >= first && point <= last)
    ? 2
    : 1;
}

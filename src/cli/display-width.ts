import { eastAsianWidth } from 'get-east-asian-width';

/** How wide text is on a terminal: Chinese characters and emoji take two columns, combining marks take none. */

const PLAIN = /^[\x20-\x7e]*$/;
/** Voiced marks of half-width kana, which have a column of their own. */
const VOICED = /[\uff9e\uff9f]/g;

let segmenter: Intl.Segmenter | undefined;

/** What a reader sees as one character, such as a letter with its marks, or a family of emoji. */
function characters(text: string): string[] {
  segmenter ??= new Intl.Segmenter();
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** Its expressions are here because V8 collects their characters when it meets them: at the top of the file, 0.5 ms of every start. */
function characterWidth(character: string): number {
  if (/^[\p{Mark}\p{Default_Ignorable_Code_Point}\p{Control}]*$/u.test(character)) return 0;
  // Shown as a picture: by itself, because a selector asks for it, or as a flag.
  if (/^(?:\p{Emoji_Presentation}|\p{Emoji}\ufe0f|\p{Regional_Indicator}{2})/u.test(character)) return 2;
  return eastAsianWidth(character.codePointAt(0)!) + (character.slice(1).match(VOICED)?.length ?? 0);
}

export function displayWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  return characters(text).reduce((sum, character) => sum + characterWidth(character), 0);
}

/** Text padded with blanks on the right, or on the left, to this width. */
export function pad(text: string, width: number, side: 'left' | 'right' = 'right'): string {
  const blanks = ' '.repeat(Math.max(0, width - displayWidth(text)));
  return side === 'right' ? text + blanks : blanks + text;
}

/** Text that fits this width, with `…` where it was cut. */
export function shorten(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  let [kept, room] = ['', width - 1];
  for (const character of characters(text)) {
    room -= characterWidth(character);
    if (room < 0) break;
    kept += character;
  }
  return `${kept}…`;
}

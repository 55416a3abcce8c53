/** Base64, which is how JSON carries bytes. */

/** How many bytes a base64 text stands for. */
export function decodedLength(text: string): number {
  const digits = text.replace(/[\r\n=]/g, '').length;
  return Math.floor((digits * 3) / 4);
}

/** A text as base64 of its UTF-8. */
export function encodeText(text: string): string {
  const bytes = new TextEncoder().encode(text);
  let binary = '';
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary);
}

/** The text in base64 of UTF-8; undefined where it is not that. */
export function decodeText(base64: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    // Neither the alphabet nor the encoding is ours to mend: the caller says what is wrong.
    return undefined;
  }
}

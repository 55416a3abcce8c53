import { createHash } from 'node:crypto';

/**
 * What looks random and is the same each time: names and addresses that follow from the UID of what they belong to. A
 * machine that is made anew under an old name has another UID, and so another identity.
 */

/** A UUID, in the form of version 8, which is for those who make their own. */
export function derivedUuid(uid: string, purpose: string): string {
  const bytes = digest(uid, purpose).subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** A hardware address that no manufacturer gives out. */
export function derivedMac(uid: string, purpose: string): string {
  const bytes = digest(uid, purpose).subarray(0, 6);
  bytes[0] = ((bytes[0] ?? 0) & 0xfc) | 0x02;
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
}

/** As in names that API servers generate: no vowels, no digits that look like letters. */
const SUFFIX_ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
const SUFFIX_LENGTH = 5;

/** The end of a name, such as API servers generate it; longer where nothing else in the name tells objects apart. */
export function derivedSuffix(uid: string, purpose: string, length = SUFFIX_LENGTH): string {
  const bytes = digest(uid, purpose).subarray(0, length);
  return [...bytes].map((byte) => SUFFIX_ALPHABET[byte % SUFFIX_ALPHABET.length]).join('');
}

function digest(uid: string, purpose: string): Buffer {
  return createHash('sha256').update(`${purpose}\n${uid}`).digest();
}

import { getDiffieHellman } from 'node:crypto';

/**
 * A well-known group of 2 048 bits (RFC 3526), as QEMU reads it. A machine that is given none makes one of its own for
 * every migration that it waits for, which takes a fifth of a second; and then agrees on keys over elliptic curves anyway.
 */
export function keyAgreementPem(): string {
  const group = getDiffieHellman('modp14');
  const der = sequence(integer(group.getPrime()), integer(group.getGenerator()));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN DH PARAMETERS-----\n${lines.join('\n')}\n-----END DH PARAMETERS-----\n`;
}

const INTEGER = 0x02;
const SEQUENCE = 0x30;

/** A leading zero keeps it from being read as negative. */
function integer(value: Buffer): Buffer {
  const [first = 0] = value;
  return encoded(INTEGER, first >= 0x80 ? Buffer.concat([Buffer.of(0), value]) : value);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return encoded(SEQUENCE, Buffer.concat(parts));
}

function encoded(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const header = length < 0x80 ? [length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...header), content]);
}

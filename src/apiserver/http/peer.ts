import type { PeerCertificate, TLSSocket } from 'node:tls';
import type { ApiRequest } from './message.ts';

/** Who is at the other end of a connection. Looked at once: parsing a certificate costs more than most requests. */
export interface Peer extends Pick<ApiRequest, 'certificate' | 'isCertificateRefused' | 'remoteAddress'> {
  /** Whether it is on this very machine. */
  readonly isLocal: boolean;
}

/** The peer of a socket whose handshake is done. */
export function peerOf(socket: TLSSocket): Peer {
  const shown = socket.getPeerCertificate();
  const isShown = Object.keys(shown).length > 0;
  const certificate = isShown && socket.authorized ? subjectOf(shown) : undefined;
  const remoteAddress = socket.remoteAddress ?? '';
  return {
    certificate,
    isCertificateRefused: isShown && certificate === undefined,
    remoteAddress,
    isLocal: remoteAddress.startsWith('127.') || remoteAddress === '::1' || remoteAddress.startsWith('::ffff:127.'),
  };
}

/** Whom a certificate names. Undefined for more than one common name: who reads which of them is anyone's guess. */
function subjectOf(certificate: PeerCertificate): ApiRequest['certificate'] {
  const subject = certificate.subject as { CN?: string | string[]; O?: string | string[] } | undefined;
  if (typeof subject?.CN !== 'string' || subject.CN === '') return undefined;
  const organizations = subject.O === undefined ? [] : Array.isArray(subject.O) ? subject.O : [subject.O];
  return { commonName: subject.CN, organizations, fingerprint: certificate.fingerprint256 };
}

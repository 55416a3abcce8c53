import { NODE_USER_PREFIX } from './node-user.ts';

/** Whom the server of a node's agent must show that it is, to whoever connects to it. */

/** A name of the node in the form that TLS allows: an agent shows the same certificate whatever it is called. */
export function nodeServerName(node: string): string {
  return /[a-z]/i.test(node) ? node : `node-${node}`;
}

/** What is wrong with a certificate that was verified. Its signer vouches for the common name; addresses come and go. */
export function nodeServerError(
  node: string,
  certificate: { readonly subject?: { readonly CN?: unknown } },
): Error | undefined {
  const expected = `${NODE_USER_PREFIX}${node}`;
  const shown = certificate.subject?.CN;
  return shown === expected
    ? undefined
    : new Error(`its certificate is that of ${JSON.stringify(shown)}, not of ${JSON.stringify(expected)}`);
}

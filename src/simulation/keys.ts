import { createPrivateKey } from 'node:crypto';
import type { ClusterPki } from '../apiserver/pki/cluster-pki.ts';
import type { Env } from '../env/ports.ts';

/**
 * The keys of a simulated server. Nobody connects to it over TLS, so certificates are mere names; nothing may be signed
 * in a simulation, since that is done on other threads, in real time. The token key, which has to be one, is the example
 * of RFC 7515, A.3: as little a secret as a key can be.
 */
const TOKEN_KEY = {
  kty: 'EC',
  crv: 'P-256',
  x: 'f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU',
  y: 'x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0',
  d: 'jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI',
};

const serviceAccountKeyPem = createPrivateKey({ key: TOKEN_KEY, format: 'jwk' }).export({
  type: 'pkcs8',
  format: 'pem',
}) as string;

/** Keys that are the same in every run. */
export function simulatedPki(env: Env): ClusterPki {
  const identity = (name: string) => ({ certificatePem: `certificate of ${name}`, keyPem: `key of ${name}` });
  return {
    clusterAuthority: { ...identity('the cluster'), env },
    server: identity('the server'),
    admin: identity('the admin'),
    frontProxyAuthority: { ...identity('the front proxy'), env },
    frontProxyClient: identity('the front proxy client'),
    nodeClient: identity('the client of nodes'),
    serviceAccountKeyPem,
  };
}

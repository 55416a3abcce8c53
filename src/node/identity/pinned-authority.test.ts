import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { realClock, realRandom } from '../../env/real.ts';
import { silentLogger } from '../../env/test.ts';
import { type Authority, createAuthority, DAY_MS, issueIdentity } from '../../machinery/x509/authority.ts';
import { fingerprintOf, pinnedAuthority } from './pinned-authority.ts';

const env = { clock: realClock, random: realRandom, log: silentLogger };
const { signal } = new AbortController();
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.closeAllConnections();
});

const fingerprint = ({ certificatePem }: Authority): string => fingerprintOf(new X509Certificate(certificatePem));

/** A server that shows its authority or does not, and publishes another or the same, or none. */
async function serve(authority: Authority, options: { shows: boolean; publishes?: Authority }) {
  const names = { commonName: 'server', ipAddresses: ['127.0.0.1'], usages: ['server' as const], validityMs: DAY_MS };
  const { certificatePem, keyPem } = await issueIdentity(authority, names);
  const seen: IncomingHttpHeaders[] = [];
  const cert = options.shows ? certificatePem + authority.certificatePem : certificatePem;
  const server = createServer({ cert, key: keyPem }, (request, response) => {
    seen.push(request.headers);
    const isAsked = request.url === '/api/v1/namespaces/kube-public/configmaps/cluster-info';
    response.writeHead(isAsked && options.publishes ? 200 : 403, { 'content-type': 'application/json' });
    const data = Buffer.from(options.publishes?.certificatePem ?? '').toString('base64');
    const kubeconfig = JSON.stringify({ clusters: [{ name: '', cluster: { 'certificate-authority-data': data } }] });
    response.end(JSON.stringify({ kind: 'ConfigMap', apiVersion: 'v1', metadata: {}, data: { kubeconfig } }));
  });
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

describe('an authority that is known by its fingerprint', async () => {
  const right = await createAuthority(env, 'right');
  const wrong = await createAuthority(env, 'wrong');

  it('is taken from the chain that the server shows', async () => {
    const { url, seen } = await serve(right, { shows: true });
    expect(await pinnedAuthority(env, url, fingerprint(right), signal)).toBe(right.certificatePem);
    expect(seen).toEqual([]);
  });

  it('is taken from what the cluster publishes, where the server shows none', async () => {
    const { url } = await serve(right, { shows: false, publishes: right });
    expect(await pinnedAuthority(env, url, fingerprint(right), signal)).toBe(right.certificatePem);
  });

  it('is not taken from anybody else, who hears nothing secret either', async () => {
    const { url, seen } = await serve(wrong, { shows: true, publishes: wrong });
    await expect(pinnedAuthority(env, url, fingerprint(right), signal)).rejects.toThrow(/none with that fingerprint/);
    expect(seen.every(({ authorization }) => authorization === undefined)).toBe(true);
  });

  it('is not the certificate of the server itself, which can sign nothing', async () => {
    const { url } = await serve(right, { shows: false });
    const leaf = await issueIdentity(right, { commonName: 'x', usages: ['server'], validityMs: DAY_MS });
    const print = fingerprintOf(new X509Certificate(leaf.certificatePem));
    await expect(pinnedAuthority(env, url, print, signal)).rejects.toThrow('cannot be had');
  });

  it('cannot be had where nobody answers', async () => {
    await expect(pinnedAuthority(env, 'https://127.0.0.1:1', fingerprint(right), signal)).rejects.toThrow(
      /^the authority of https:\/\/127\.0\.0\.1:1 cannot be had: .*ECONNREFUSED/,
    );
  });
});

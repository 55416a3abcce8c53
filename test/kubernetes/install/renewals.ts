import { X509Certificate } from 'node:crypto';
import { connect } from 'node:tls';
import { expect } from 'vitest';
import { realClock, realRandom } from '../../../src/env/real.ts';
import { type Authority, createAuthority, DAY_MS, issueIdentity } from '../../../src/machinery/x509/authority.ts';
import type { Anything } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { probe, virtualMachine } from '../../support/guest-manifests.ts';
import type { AdminsCluster } from './cluster.ts';

/** Certificates of an installation that are renewed while it runs. */

/** Short enough for nodes to renew theirs while a test looks, long enough for a busy machine to do so in time. */
export const CERTIFICATE_LIFE = '4m';
const RENEWAL_MS = 300_000;
const PATIENCE_MS = 180_000;
export const MACHINES = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
export const SUBRESOURCES = '/apis/subresources.kubevirt.io/v1';
export const MERGE = { 'content-type': 'application/merge-patch+json' };
const SECRET = '/api/v1/namespaces/kubevirt/secrets/kubevirt-virt-api-certs';
const REAL = { clock: realClock, random: realRandom };

/** What a pod of the extension shows to those who call it. */
async function shownBy(pod: Anything): Promise<string> {
  const host = pod.status.podIP as string;
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: 8443, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

/** What the extension keeps of its certificates. */
async function certificatesNow(cluster: AdminsCluster): Promise<{ authority: Authority; authoritiesPem: string }> {
  const { data } = (await cluster.api.request('GET', SECRET)).expect(200).json;
  const text = (key: string): string => Buffer.from(data[key], 'base64').toString();
  const authority = { certificatePem: text('ca.crt'), keyPem: text('ca.key'), env: REAL };
  return { authority, authoritiesPem: text('ca-bundle.crt') };
}

/** Has the extension find these instead of what it has kept, and waits until both replicas show the same, and this. */
async function renewsFrom(
  cluster: AdminsCluster,
  kept: Readonly<Record<string, string>>,
  isIt: (shown: string) => boolean,
): Promise<void> {
  const { api } = cluster;
  const data = Object.entries(kept).map(([key, pem]) => [key, Buffer.from(pem).toString('base64')]);
  (await api.request('PATCH', SECRET, { body: { data: Object.fromEntries(data) }, headers: MERGE })).expect(200);
  const [first, second] = await cluster.podsOf('virt-api');
  const refused: string[] = [];
  await eventually(async () => {
    // Nobody is to notice, all the while: neither of webhooks nor of the aggregated API.
    const tried = await api.request('POST', `${MACHINES}?dryRun=All`, { body: virtualMachine('try', probe()) });
    if (tried.status !== 201) refused.push(tried.text);
    const passedOn = await api.request('GET', SUBRESOURCES);
    // A busy machine has the API server believe for a while that nobody is there; of certificates it speaks.
    const isAway = passedOn.status === 503 && passedOn.text.trim() === 'service unavailable';
    if (passedOn.status !== 200 && !isAway) refused.push(passedOn.text);
    const shown = await shownBy(first);
    expect(isIt(shown)).toBe(true);
    expect(await shownBy(second)).toBe(shown);
  }, PATIENCE_MS);
  expect(refused).toEqual([]);
}

/** The extension renews what it shows, and its authority, and nobody notices. */
export async function renewsExtension(cluster: AdminsCluster): Promise<void> {
  const [pod] = await cluster.podsOf('virt-api');
  const seen = [await shownBy(pod)];
  const issued = async (by: Authority, validityMs: number): Promise<Record<string, string>> => {
    const dnsNames = ['virt-api.kubevirt.svc', 'virt-api.kubevirt.svc.cluster.local'];
    const options = { commonName: 'virt-api', dnsNames, usages: ['server'], validityMs } as const;
    const { certificatePem, keyPem } = await issueIdentity(by, options);
    seen.push(new X509Certificate(certificatePem).fingerprint256);
    return { 'tls.crt': certificatePem, 'tls.key': keyPem };
  };
  const isNew = (shown: string): boolean => !seen.includes(shown);
  const { authority, authoritiesPem } = await certificatesNow(cluster);
  await renewsFrom(cluster, await issued(authority, 30 * DAY_MS), isNew);
  expect((await certificatesNow(cluster)).authoritiesPem).toBe(authoritiesPem);
  seen.push(await shownBy(pod));
  // An authority that would not outlive what it signs is followed by another, and recognised as long as its certificates may be shown.
  const old = await createAuthority(REAL, 'old', 400 * DAY_MS);
  const bundle = old.certificatePem + authority.certificatePem;
  const kept = { 'ca.crt': old.certificatePem, 'ca.key': old.keyPem, 'ca-bundle.crt': bundle };
  await renewsFrom(cluster, { ...kept, ...(await issued(old, 300 * DAY_MS)) }, (shown) => shown === seen.at(-1));
  await renewsFrom(cluster, await issued(old, 30 * DAY_MS), isNew);
  const now = await certificatesNow(cluster);
  expect([old.certificatePem, authority.certificatePem]).not.toContain(now.authority.certificatePem);
  expect(now.authoritiesPem).toBe(now.authority.certificatePem + old.certificatePem);
  for (const { status } of await cluster.podsOf('virt-api')) expect(status.containerStatuses[0].restartCount).toBe(0);
}

/** Certificates of the cluster's own signer, approved by its own approver: with no more than what was installed. */
export async function renewsNodes(cluster: AdminsCluster): Promise<void> {
  const nodes = ['node-1', 'node-2'];
  const endsMs = (node: string): number => Date.parse(new X509Certificate(cluster.certificateOf(node)).validTo);
  const first = new Map(nodes.map((node) => [node, endsMs(node)]));
  await eventually(() => {
    for (const [node, endMs] of first) expect(endsMs(node), node).toBeGreaterThan(endMs);
    // By then those that they joined with are of no use.
    expect(Date.now()).toBeGreaterThan(Math.max(...first.values()));
  }, RENEWAL_MS);
  for (const node of nodes) {
    const client = cluster.clientOf(node);
    (await client.request('GET', `/api/v1/nodes/${node}`)).expect(200);
    client.close();
  }
  await cluster.kubectl.ok(`wait node ${nodes.join(' ')} --for condition=Ready --timeout ${PATIENCE_MS}ms`, {
    killAfterMs: PATIENCE_MS,
  });
}

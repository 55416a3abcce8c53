import { readFileSync } from 'node:fs';
import { accessIn } from '../access.ts';
import { eventually } from '../eventually.ts';
import { HttpClient } from '../http-client.ts';
import type { Anything, Api } from '../api.ts';
import { FOREIGN_KUBECONFIG } from './wanted.ts';

const PATIENCE_MS = 120_000;
const MERGE = { 'content-type': 'application/merge-patch+json' };
/** All that Godwit's kinds are, and so all that may wait for a controller that is gone. */
const GROUPS: ReadonlySet<string> = new Set(['kubevirt.io', 'migrations.kubevirt.io', 'instancetype.kubevirt.io']);
const NODE = /^node-\d+$/;
/** What a cluster has by itself. */
const OWN_NAMESPACES = /^(?:default|kube-.*)$/;

/** By this label of its namespace `default` an admin says that tests may remove whatever is in a cluster. */
const CONSENT = 'godwit.dev/emptied-by-tests';

/**
 * The kubeconfig of the cluster that is given to this run, which is emptied first; undefined where none is given. Not when a test ends,
 * whose agents bring their nodes back for as long as they run.
 */
export async function givenCluster(): Promise<string | undefined> {
  if (FOREIGN_KUBECONFIG === undefined) return undefined;
  const kubeconfig = readFileSync(FOREIGN_KUBECONFIG, 'utf8');
  const client = new HttpClient(accessIn(kubeconfig));
  try {
    await empty(client);
  } finally {
    client.close();
  }
  return kubeconfig;
}

/**
 * Takes everything out of a cluster that a test has put there, Godwit's kinds included, so that the next one finds nothing. Throws, and
 * touches nothing, where its admin has not consented.
 */
export async function empty(client: Api): Promise<void> {
  const { metadata } = (await client.request('GET', '/api/v1/namespaces/default')).expect(200).json;
  if (metadata.labels?.[CONSENT] !== 'true')
    throw new Error(
      `tests remove all machines of the cluster of GODWIT_TEST_KUBECONFIG, and all namespaces but default and kube-*. Where that is meant, say so there: kubectl label namespace default ${CONSENT}=true`,
    );
  await remove(client, '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', isOurs);
  await remove(client, '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations', isOurs);
  await remove(client, '/apis/apiregistration.k8s.io/v1/apiservices', isOurs);
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const ours = ({ spec }: Anything): boolean => GROUPS.has(spec.group);
  for (const { spec } of (await list(client, definitions)).filter(ours)) await release(client, spec);
  await remove(client, definitions, ours);
  await remove(client, '/api/v1/nodes', ({ metadata }) => NODE.test(metadata.name));
  for (const kind of ['/api/v1/{}pods', '/apis/policy/v1/{}poddisruptionbudgets', '/api/v1/{}persistentvolumeclaims'])
    await remove(client, kind.replace('{}', 'namespaces/default/'), () => true);
  await remove(client, '/api/v1/namespaces', ({ metadata }) => !OWN_NAMESPACES.test(metadata.name));
  await remove(client, '/apis/storage.k8s.io/v1/storageclasses', ({ provisioner }) => provisioner.includes('godwit'));
}

const isOurs = ({ metadata }: Anything): boolean => metadata.labels?.['app.kubernetes.io/part-of'] === 'godwit';

async function list(client: Api, path: string): Promise<Anything[]> {
  const answer = await client.request('GET', path);
  return answer.status === 404 ? [] : answer.expect(200).json.items;
}

/** Nobody is left who would do what finalizers wait for. */
async function release(client: Api, { group, versions, names }: Anything): Promise<void> {
  const base = `/apis/${group}/${versions[0].name}`;
  for (const { metadata } of await list(client, `${base}/${names.plural}`)) {
    const within = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
    const body = { metadata: { finalizers: null } };
    await client.request('PATCH', `${base}${within}/${names.plural}/${metadata.name}`, { body, headers: MERGE });
  }
}

/** Deletes what is found, and waits until it is gone. */
async function remove(client: Api, path: string, isMeant: (object: Anything) => boolean): Promise<void> {
  const body = { gracePeriodSeconds: 0, propagationPolicy: 'Background' };
  for (const { metadata } of (await list(client, path)).filter(isMeant))
    await client.request('DELETE', `${path}/${metadata.name}`, { body });
  await eventually(async () => {
    const left = (await list(client, path)).filter(isMeant).map(({ metadata }) => metadata.name);
    if (left.length > 0) throw new Error(`${path}: ${left.join(', ')} cannot be removed`);
  }, PATIENCE_MS);
}

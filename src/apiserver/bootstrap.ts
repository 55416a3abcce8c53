import type { KubeObject } from '../api/meta.ts';
import { parseApiVersion } from '../api/meta.ts';
import { ApiError } from '../api/status.ts';
import { deepEqual } from '../machinery/equal.ts';
import { bootstrapObjects } from './auth/bootstrap-policy.ts';
import type { ClusterPki } from './pki/cluster-pki.ts';
import type { Registry, Target, WriteContext } from './registry/contract.ts';

/** What a cluster has from its first start on: namespaces, priorities, default roles, and how to verify the front proxy. */

const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];
/** Set to "false" by an admin who wants to keep changes of a default role. */
const AUTO_UPDATE = 'rbac.authorization.kubernetes.io/autoupdate';

function namespace(name: string): KubeObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

function priorityClass(name: string, value: number, description: string): KubeObject {
  return {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    description,
    preemptionPolicy: 'PreemptLowerPriority',
  };
}

/** What an aggregated API server reads to know which proxies may name users to it. */
function frontProxyConfiguration(pki: ClusterPki): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'extension-apiserver-authentication', namespace: 'kube-system' },
    data: {
      'client-ca-file': pki.clusterAuthority.certificatePem,
      'requestheader-allowed-names': '["front-proxy-client"]',
      'requestheader-client-ca-file': pki.frontProxyAuthority.certificatePem,
      'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
      'requestheader-group-headers': '["X-Remote-Group"]',
      'requestheader-uid-headers': '["X-Remote-Uid"]',
      'requestheader-username-headers': '["X-Remote-User"]',
    },
  };
}

/** Creates what is missing and repairs what an upgrade has changed. Idempotent: every start calls it. */
export async function bootstrap(registry: Registry, pki: ClusterPki, context: WriteContext): Promise<void> {
  for (const name of NAMESPACES) await ensure(registry, context, namespace(name), isPresent);
  await ensure(
    registry,
    context,
    priorityClass('system-cluster-critical', 2_000_000_000, 'Pods that the cluster cannot do without.'),
    isPresent,
  );
  await ensure(
    registry,
    context,
    priorityClass('system-node-critical', 2_000_001_000, 'Pods that a node cannot do without.'),
    isPresent,
  );
  await ensure(registry, context, frontProxyConfiguration(pki), hasFields(['data']));
  for (const object of bootstrapObjects()) await ensure(registry, context, object, isUpToDateRole);
}

type Check = (live: KubeObject, wanted: KubeObject) => boolean;

const isPresent: Check = () => true;
const hasFields =
  (fields: readonly string[]): Check =>
  (live, wanted) =>
    fields.every((field) => deepEqual(live[field], wanted[field]));
const isUpToDateRole: Check = (live, wanted) =>
  live.metadata.annotations?.[AUTO_UPDATE] === 'false' ||
  hasFields(['rules', 'aggregationRule', 'roleRef', 'subjects'])(live, wanted);

async function ensure(registry: Registry, context: WriteContext, wanted: KubeObject, isFine: Check): Promise<void> {
  const target = targetOf(registry, wanted);
  const live = registry.read(target);
  if (live && isFine(live, wanted)) return;
  try {
    if (live)
      await registry.update(context, target, (current) => ({
        ...wanted,
        metadata: { ...current.metadata, labels: wanted.metadata.labels, annotations: wanted.metadata.annotations },
      }));
    else await registry.create(context, { ...target, name: '' }, wanted);
  } catch (error) {
    // A role whose binding points elsewhere is the admin's: its roleRef cannot be changed.
    if (!(error instanceof ApiError) || error.reason !== 'Invalid') throw error;
  }
}

function targetOf(registry: Registry, object: KubeObject): Target {
  const { group, version } = parseApiVersion(object.apiVersion);
  const definition = registry
    .definitions()
    .find((each) => each.group === group && each.version === version && each.kind === object.kind);
  if (!definition) throw new Error(`${object.apiVersion} ${object.kind} is not served`);
  return { definition, namespace: object.metadata.namespace ?? '', name: object.metadata.name ?? '' };
}

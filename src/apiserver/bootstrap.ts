import type { KubeObject } from '../api/meta.ts';
import { deepEqual } from '../machinery/equal.ts';
import { reconcileBootstrapPolicy } from './auth/bootstrap-reconcile.ts';
import type { ClusterPki } from './pki/cluster-pki.ts';
import type { Registry, WriteContext } from './registry/contract.ts';

/** What a cluster has from its first start on: namespaces, priorities, default roles, and how to verify the front proxy. */

const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

function namespace(name: string): KubeObject {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

function priorityClass(name: string, value: number, description: string): KubeObject {
  return { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name }, value, description };
}

/** What an aggregated API server reads to know which proxies may name users to it. */
function frontProxyConfiguration(pki: FrontProxyTrust): KubeObject {
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

type FrontProxyTrust = Pick<ClusterPki, 'clusterAuthority' | 'frontProxyAuthority'>;

/** Creates what is missing and mends what has changed since the last start. */
export async function bootstrap(registry: Registry, trust: FrontProxyTrust, context: WriteContext): Promise<void> {
  const ensure = async (group: string, version: string, plural: string, wanted: KubeObject): Promise<void> => {
    const definition = registry.definition(group, version, plural);
    if (!definition) throw new Error(`${plural} are not served`);
    const target = { definition, namespace: wanted.metadata.namespace ?? '', name: wanted.metadata.name ?? '' };
    const live = registry.read(target);
    if (!live) await registry.create(context, target, wanted);
    else if (wanted['data'] !== undefined && !deepEqual(live['data'], wanted['data']))
      await registry.update(context, target, (current) => ({ ...current, data: wanted['data'] }));
  };
  await Promise.all(NAMESPACES.map((name) => ensure('', 'v1', 'namespaces', namespace(name))));
  await Promise.all([
    ensure(
      'scheduling.k8s.io',
      'v1',
      'priorityclasses',
      priorityClass('system-cluster-critical', 2_000_000_000, 'Pods that the cluster cannot do without.'),
    ),
    ensure(
      'scheduling.k8s.io',
      'v1',
      'priorityclasses',
      priorityClass('system-node-critical', 2_000_001_000, 'Pods that a node cannot do without.'),
    ),
    ensure('', 'v1', 'configmaps', frontProxyConfiguration(trust)),
    reconcileBootstrapPolicy(registry, context),
  ]);
}

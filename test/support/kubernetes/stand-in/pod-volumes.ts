import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Anything, Api } from '../../api.ts';

/** What a kubelet puts into a pod's volumes: of those that are projected, which are all that our components have. */

/** Writes the files of a volume into a directory. */
export async function writeVolume(api: Api, pod: Anything, volume: Anything, directory: string): Promise<void> {
  if (!volume.projected) throw new Error(`the stand-in knows no volume like ${JSON.stringify(volume)}`);
  mkdirSync(directory, { recursive: true, mode: 0o755 });
  for (const source of volume.projected.sources)
    for (const [path, text] of await filesOf(api, pod, source)) writeFileSync(join(directory, path), text);
}

async function filesOf(api: Api, pod: Anything, source: Anything): Promise<[path: string, text: string][]> {
  const { namespace } = pod.metadata;
  if (source.serviceAccountToken) return [[source.serviceAccountToken.path, await tokenOf(api, pod, source)]];
  if (source.configMap) {
    const path = `/api/v1/namespaces/${namespace}/configmaps/${source.configMap.name}`;
    const { data } = (await api.request('GET', path)).expect(200).json;
    return source.configMap.items.map((item: Anything) => [item.path, data[item.key]]);
  }
  const items: Anything[] = source.downwardAPI?.items ?? [];
  if (!items.every(({ fieldRef }) => fieldRef?.fieldPath === 'metadata.namespace') || items.length === 0)
    throw new Error(`the stand-in knows no source like ${JSON.stringify(source)}`);
  return items.map(({ path }) => [path, namespace]);
}

/** A token of the pod's account, good for as long as the pod is there; tests are over before it has to be renewed. */
async function tokenOf(api: Api, { metadata, spec }: Anything, source: Anything): Promise<string> {
  const { name, namespace, uid } = metadata;
  const { expirationSeconds, audience } = source.serviceAccountToken;
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: {
      audiences: audience === undefined ? [] : [audience],
      expirationSeconds,
      boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid },
    },
  };
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${spec.serviceAccountName}/token`;
  return (await api.request('POST', path, { body })).expect(201).json.status.token;
}

import type { Api } from './api.ts';

/** Small objects that many tests make. */

export interface ConfigMapOptions {
  readonly data?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly namespace?: string;
}

export function configMap(name: string, options: ConfigMapOptions = {}): object {
  const { data, labels, namespace } = options;
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), ...(labels ? { labels } : {}) },
    ...(data ? { data } : {}),
  };
}

export function namespace(name: string): object {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
}

let sequence = 0;

/** Makes a namespace that no other test uses, and answers its name. */
export async function makeNamespace(api: Api): Promise<string> {
  const name = `room-${process.pid}-${sequence++}`;
  (await api.request('POST', '/api/v1/namespaces', { body: namespace(name) })).expect(201);
  return name;
}

/** Makes such a namespace, and answers the path of its ConfigMaps. */
export async function makeRoom(api: Api): Promise<string> {
  return `/api/v1/namespaces/${await makeNamespace(api)}/configmaps`;
}

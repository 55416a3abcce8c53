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

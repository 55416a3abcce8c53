import type { Anything } from '../../../support/api.ts';
import { get, type Group, refused, without } from '../request.ts';

/** What both serve. The real one serves more; the embedded one serves KubeVirt's besides. */
const SHARED = [
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'apiregistration.k8s.io',
  'apps',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'batch',
  'certificates.k8s.io',
  'coordination.k8s.io',
  'discovery.k8s.io',
  'events.k8s.io',
  'networking.k8s.io',
  'node.k8s.io',
  'policy',
  'rbac.authorization.k8s.io',
  'scheduling.k8s.io',
  'storage.k8s.io',
];

/** What the embedded API does not serve, as accepted.ts says of discovery. */
const UNSERVED = /proxy|\/watch\/|\/(exec|attach|portforward)$|ephemeral|resize|bindings|componentstatus/;

const aggregated = (version: string): Record<string, string> => ({
  accept: `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
});

const byName = (items: Anything[]): Anything => Object.fromEntries(items.map((item) => [item.name, item]));

const resources = (body: Anything): Anything => ({
  ...body,
  resources: byName(body.resources.map((resource: Anything) => ({ ...resource, storageVersionHash: '' }))),
});

/** Groups that only one of them serves are no matter of this test; neither is the order of the others. */
const sharedGroups = (body: Anything): Anything => ({
  ...body,
  groups: byName(body.groups.filter((group: Anything) => SHARED.includes(group.name))),
});

const sharedAggregated = (body: Anything): Anything => ({
  ...body,
  items: Object.fromEntries(
    body.items
      .filter(({ metadata }: Anything) => metadata.name === undefined || SHARED.includes(metadata.name))
      .map((item: Anything) => [
        item.metadata.name ?? '',
        item.versions.map((version: Anything) => ({
          ...version,
          resources: Object.fromEntries(
            version.resources.map((resource: Anything) => [
              resource.resource,
              {
                ...resource,
                subresources: Object.fromEntries(
                  (resource.subresources ?? []).map((each: Anything) => [each.subresource, each]),
                ),
              },
            ]),
          ),
        })),
      ]),
  ),
});

export const DISCOVERY: Group = {
  name: 'discovery',
  requests: [
    get('which versions of the core are there', '/api', {
      view: (body) => without(body, 'serverAddressByClientCIDRs'),
    }),
    get('which groups are there', '/apis', { view: sharedGroups }),
    get('what is in the core', '/api/v1', { view: resources }),
    ...SHARED.map((group) => get(`what is in ${group}`, `/apis/${group}/v1`, { view: resources })),
    get('a group', '/apis/policy'),
    get('a group of several kinds', '/apis/apps'),
    refused(404).get('a group that is not there', '/apis/nothing.example.org'),
    refused(404).get('a version that is not there', '/apis/policy/v9'),
    refused(404).get('the core in a version that is not there', '/api/v9'),
    get('the core at once', '/api', { headers: aggregated('v2'), view: sharedAggregated }),
    get('the groups at once', '/apis', { headers: aggregated('v2'), view: sharedAggregated }),
    get('a version as another media type', '/api/v1', { headers: { accept: 'application/xml' } }),
    get('what is alive', '/livez'),
    get('what is ready', '/readyz'),
    get('what is healthy', '/healthz'),
    get('one thing that is alive', '/livez/ping'),
    refused(404).get('one thing that nobody knows', '/livez/nothing'),
    get('OpenAPI of which groups', '/openapi/v3', {
      view: ({ paths }) => ['api/v1', ...SHARED.map((group) => `apis/${group}/v1`)].filter((path) => path in paths),
    }),
    get('OpenAPI 2 of a pod', '/openapi/v2', {
      view: ({ swagger, definitions }) => ({
        swagger,
        pod: shape(definitions['io.k8s.api.core.v1.Pod']),
        container: shape(definitions['io.k8s.api.core.v1.Container']),
        meta: shape(definitions['io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta']),
      }),
    }),
    get('OpenAPI 3 of the core', '/openapi/v3/api/v1', {
      view: ({ openapi, paths, components }) => ({
        openapi,
        paths: Object.fromEntries(
          Object.entries<Anything>(paths)
            .filter(([path]) => !UNSERVED.test(path))
            .map(([path, item]) => [path, methodsOf(item)]),
        ),
        schemas: Object.fromEntries(
          Object.entries<Anything>(components.schemas)
            .filter(([name]) =>
              /core\.v1\.(Pod|PodSpec|Container|Node|NodeSpec|NodeStatus|ConfigMap|Secret|Volume|Taint)$/.test(name),
            )
            .map(([name, schema]) => [name, shape(schema)]),
        ),
      }),
    }),
    get('OpenAPI 3 of budgets', '/openapi/v3/apis/policy/v1', {
      view: ({ components }) =>
        Object.fromEntries(
          Object.entries<Anything>(components.schemas)
            .filter(([name]) => name.startsWith('io.k8s.api.policy.'))
            .map(([name, schema]) => [name, shape(schema)]),
        ),
    }),
    refused(404).get('OpenAPI 3 of a group that is not there', '/openapi/v3/apis/nothing.example.org/v1'),
    refused(406).get('OpenAPI 2 as another media type', '/openapi/v2', {
      headers: { accept: 'application/xml' },
      view: (body) => typeof body,
    }),
    refused(404).get('a path that is not there', '/nothing'),
    get('the root', '/', { view: ({ paths }) => paths.includes('/apis/policy/v1') }),
  ],
};

function methodsOf(item: Anything): string {
  return ['get', 'put', 'post', 'delete', 'options', 'head', 'patch'].filter((method) => method in item).join(' ');
}

/** A schema without its texts, without what Go takes for a default, and with values in order. */
function shape(schema: Anything): Anything {
  if (Array.isArray(schema)) return schema.map(shape);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { allOf, ...own } = schema;
  // A reference cannot have a default beside it, so that it is wrapped where there is one.
  const unwrapped = Array.isArray(allOf) && allOf.length === 1 ? { ...own, ...allOf[0] } : schema;
  return Object.fromEntries(
    Object.entries<Anything>(unwrapped)
      .filter(([key, value]) => key !== 'description' || typeof value !== 'string')
      .filter(([key, value]) => key !== 'default' || !['""', '{}', '0'].includes(JSON.stringify(value)))
      .map(([key, value]) => [key, key === 'enum' ? [...new Set<string>(value)].toSorted() : shape(value)]),
  );
}

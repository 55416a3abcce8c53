import { SUBRESOURCE_GROUP, SUBRESOURCE_VERSIONS, SUBRESOURCES, verbOf } from './group.ts';

/** What the aggregated API says of itself: discovery, and just enough OpenAPI for clients not to stumble. Pure. */

const KINDS = { virtualmachines: 'VirtualMachine', virtualmachineinstances: 'VirtualMachineInstance' } as const;
const GROUP_VERSIONS = SUBRESOURCE_VERSIONS.map((version) => ({
  groupVersion: `${SUBRESOURCE_GROUP}/${version}`,
  version,
}));

const GROUP = {
  kind: 'APIGroup',
  apiVersion: 'v1',
  name: SUBRESOURCE_GROUP,
  versions: GROUP_VERSIONS,
  preferredVersion: GROUP_VERSIONS[0],
};

/** Documents by path. */
export function documents(version: string): ReadonlyMap<string, object> {
  const root = `/apis/${SUBRESOURCE_GROUP}`;
  const info = { title: 'Godwit', version };
  const found: [string, object][] = [
    ['/apis', { kind: 'APIGroupList', apiVersion: 'v1', groups: [GROUP] }],
    [root, GROUP],
    ['/openapi/v2', { swagger: '2.0', info, paths: {} }],
    [
      '/openapi/v3',
      {
        paths: Object.fromEntries(
          SUBRESOURCE_VERSIONS.map((each) => [
            `apis/${SUBRESOURCE_GROUP}/${each}`,
            { serverRelativeURL: `/openapi/v3/apis/${SUBRESOURCE_GROUP}/${each}?hash=${hashOf(version)}` },
          ]),
        ),
      },
    ],
  ];
  for (const each of SUBRESOURCE_VERSIONS) {
    found.push(
      [`${root}/${each}`, resources(each)],
      [`${root}/${each}/version`, versionInfo(version)],
      [`${root}/${each}/healthz`, { apiserver: { connectivity: 'ok' } }],
      [`/openapi/v3${root}/${each}`, { openapi: '3.0.0', info, paths: paths(`${root}/${each}`) }],
    );
  }
  return new Map(found);
}

function resources(version: string): object {
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: `${SUBRESOURCE_GROUP}/${version}`,
    resources: SUBRESOURCES.map((each) => ({
      name: `${each.resource}/${each.subresource}`,
      singularName: '',
      namespaced: true,
      group: 'kubevirt.io',
      version: 'v1',
      kind: KINDS[each.resource],
      verbs: [verbOf(each)],
    })),
  };
}

function versionInfo(version: string): object {
  const [major = '0', minor = '0'] = version.split('.');
  return {
    gitVersion: `v${version}`,
    gitCommit: '',
    gitTreeState: '',
    buildDate: '',
    goVersion: '',
    compiler: '',
    platform: 'linux/amd64',
    major,
    minor,
  };
}

function paths(root: string): object {
  return Object.fromEntries(
    SUBRESOURCES.map(({ resource, subresource, method }) => [
      `${root}/namespaces/{namespace}/${resource}/{name}/${subresource}`,
      {
        [method.toLowerCase()]: {
          operationId: `${subresource.replace('/', '')}${KINDS[resource]}`,
          parameters: ['namespace', 'name'].map((name) => ({
            name,
            in: 'path',
            required: true,
            schema: { type: 'string' },
          })),
          responses: { '200': { description: 'OK' }, '202': { description: 'Accepted' } },
        },
      },
    ]),
  );
}

/** Of letters and digits alone, as clients expect. */
function hashOf(version: string): string {
  return Buffer.from(`subresources ${version}`).toString('hex').toUpperCase();
}

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtinDefinitions } from '../../src/api/kinds/builtins.ts';
import { deleteOptionsSchema, evictionSchema, tokenRequestSchema } from '../../src/api/kinds/meta-options.ts';
import type { JsonObject } from '../../src/api/meta.ts';
import type { Schema } from '../../src/api/schema.ts';
import { makeCertificateRequest } from '../../src/machinery/x509/certificate-request.fixture.ts';
import { encodeProtobuf } from '../../src/machinery/protobuf/test-encoder.ts';
import type { Answer, Anything } from '../support/api.ts';
import { InProcessApi } from '../support/in-process.ts';
import { configMap, makeNamespace } from '../support/objects.ts';

/** Bodies in the encoding that kubectl insists on for some of its commands. */

const PROTOBUF = { 'content-type': 'application/vnd.kubernetes.protobuf' };

let api: InProcessApi;
let room = '';
let path = '';

beforeAll(async () => {
  api = await InProcessApi.start();
  room = await makeNamespace(api);
  path = `/api/v1/namespaces/${room}/configmaps`;
  const accounts = `/api/v1/namespaces/${room}/serviceaccounts`;
  (await api.request('POST', accounts, { body: { metadata: { name: 'default' } } })).expect(201);
});
afterAll(() => api.stop());

const post = (target: string, body: unknown, headers = {}): Promise<Answer> =>
  api.request('POST', target, { body, headers });

function pod(name: string): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'example.org/main:1' }] },
  };
}

describe('protobuf bodies', () => {
  const meta = { name: 'pb', labels: { a: 'b' }, annotations: { c: 'd' } };
  const template = {
    metadata: { labels: { app: 'pb' } },
    spec: {
      containers: [{ name: 'main', image: 'example.org/main:1', resources: { requests: { cpu: '100m' } } }],
      restartPolicy: 'Never',
    },
  };
  const always = { ...template, spec: { ...template.spec, restartPolicy: 'Always' } };
  const selector = { matchLabels: { app: 'pb' } };
  /** What `kubectl create`, `run`, `expose`, `autoscale`, `set` and `drain` send in this encoding. */
  const bodies: Record<string, JsonObject> = {
    'v1 namespaces': { kind: 'Namespace', metadata: meta },
    'v1 configmaps': {
      kind: 'ConfigMap',
      metadata: meta,
      data: { k: 'v' },
      binaryData: { b: 'AAH/' },
      immutable: true,
    },
    'v1 secrets': { kind: 'Secret', metadata: meta, type: 'Opaque', data: { k: 'dg==' } },
    'v1 serviceaccounts': { kind: 'ServiceAccount', metadata: meta, automountServiceAccountToken: false },
    'v1 resourcequotas': {
      kind: 'ResourceQuota',
      metadata: meta,
      spec: { hard: { pods: '4', 'requests.cpu': '500m' }, scopes: ['NotTerminating'] },
    },
    'v1 services': {
      kind: 'Service',
      metadata: meta,
      spec: {
        ports: [
          { name: 'http', port: 80, targetPort: 'web', protocol: 'TCP' },
          { name: 'raw', port: 81, targetPort: 8080 },
        ],
        selector: { app: 'pb' },
        type: 'ClusterIP',
      },
    },
    'v1 pods': { kind: 'Pod', metadata: meta, spec: template.spec },
    'v1 events': {
      kind: 'Event',
      metadata: meta,
      involvedObject: { kind: 'Pod', name: 'x', namespace: '' },
      reason: 'Tested',
      message: 'm',
      type: 'Normal',
      count: 2,
      firstTimestamp: '2026-01-02T03:04:05Z',
    },
    'v1 persistentvolumeclaims': {
      kind: 'PersistentVolumeClaim',
      metadata: meta,
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
    'apps/v1 deployments': {
      kind: 'Deployment',
      metadata: meta,
      spec: {
        replicas: 2,
        selector,
        template: always,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: 1 } },
      },
    },
    'apps/v1 statefulsets': {
      kind: 'StatefulSet',
      metadata: meta,
      spec: { serviceName: 's', selector, template: always },
    },
    'apps/v1 daemonsets': { kind: 'DaemonSet', metadata: meta, spec: { selector, template: always } },
    'batch/v1 jobs': { kind: 'Job', metadata: meta, spec: { template } },
    'batch/v1 cronjobs': {
      kind: 'CronJob',
      metadata: meta,
      spec: { schedule: '*/5 * * * *', jobTemplate: { spec: { template } } },
    },
    'policy/v1 poddisruptionbudgets': {
      kind: 'PodDisruptionBudget',
      metadata: meta,
      spec: { minAvailable: '50%', selector },
    },
    'scheduling.k8s.io/v1 priorityclasses': {
      kind: 'PriorityClass',
      metadata: meta,
      value: -7,
      description: 'low',
      preemptionPolicy: 'Never',
    },
    'rbac.authorization.k8s.io/v1 roles': {
      kind: 'Role',
      metadata: meta,
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'], resourceNames: ['x'] }],
    },
    'rbac.authorization.k8s.io/v1 clusterroles': {
      kind: 'ClusterRole',
      metadata: meta,
      rules: [{ nonResourceURLs: ['/healthz'], verbs: ['get'] }],
      aggregationRule: { clusterRoleSelectors: [selector] },
    },
    'rbac.authorization.k8s.io/v1 rolebindings': {
      kind: 'RoleBinding',
      metadata: meta,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'ServiceAccount', name: 'x', namespace: 'y' }],
    },
    'rbac.authorization.k8s.io/v1 clusterrolebindings': {
      kind: 'ClusterRoleBinding',
      metadata: meta,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'x' }],
    },
    'networking.k8s.io/v1 ingresses': {
      kind: 'Ingress',
      metadata: meta,
      spec: {
        rules: [
          {
            host: 'x.example.org',
            http: {
              paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 's', port: { number: 80 } } } }],
            },
          },
        ],
      },
    },
    'coordination.k8s.io/v1 leases': {
      kind: 'Lease',
      metadata: meta,
      spec: { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: '2026-01-02T03:04:05.678901Z' },
    },
    'certificates.k8s.io/v1 certificatesigningrequests': {
      kind: 'CertificateSigningRequest',
      metadata: meta,
      spec: { request: '', signerName: 'example.org/sign', usages: ['client auth'] },
    },
    'authorization.k8s.io/v1 selfsubjectaccessreviews': {
      kind: 'SelfSubjectAccessReview',
      metadata: {},
      spec: { resourceAttributes: { verb: 'get', resource: 'pods', namespace: 'x' } },
    },
    'authorization.k8s.io/v1 selfsubjectrulesreviews': {
      kind: 'SelfSubjectRulesReview',
      metadata: {},
      spec: { namespace: 'default' },
    },
    'authentication.k8s.io/v1 selfsubjectreviews': { kind: 'SelfSubjectReview', metadata: {} },
  };

  beforeAll(async () => {
    const { requestPem } = await makeCertificateRequest({ commonName: 'someone' });
    const request = Buffer.from(requestPem).toString('base64');
    bodies['certificates.k8s.io/v1 certificatesigningrequests'] = {
      kind: 'CertificateSigningRequest',
      metadata: meta,
      spec: { request, signerName: 'example.org/sign', usages: ['client auth'] },
    };
    bodies['v1 events'] = { ...bodies['v1 events'], involvedObject: { kind: 'Pod', name: 'x', namespace: room } };
  });

  /** Times and ids differ from one request to the next. */
  function comparable(text: string): Anything {
    const plain = text
      .replaceAll(/"(creationTimestamp|time|clusterIP)":"[^"]*"/g, '"$1":""')
      .replaceAll(/"clusterIPs":\["[^"]*"\]/g, '"clusterIPs":[]')
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'uuid');
    return JSON.parse(plain);
  }

  it.each(Object.keys(bodies))('%s are taken as the same object as in JSON', async (name) => {
    const [groupVersion = '', plural = ''] = name.split(' ');
    const definition = builtinDefinitions.find(
      (each) =>
        each.plural === plural && (each.group === '' ? each.version : `${each.group}/${each.version}`) === groupVersion,
    );
    const body = { apiVersion: groupVersion, ...bodies[name] } as JsonObject & { apiVersion: string; kind: string };
    const prefix = groupVersion === 'v1' ? '/api/v1' : `/apis/${groupVersion}`;
    const target = `${prefix}${definition?.namespaced ? `/namespaces/${room}` : ''}/${plural}?dryRun=All&fieldValidation=Strict`;
    const viaJson = (await post(target, body)).expect(201);
    const viaProtobuf = (await post(target, encodeProtobuf(body, definition?.schema as Schema), PROTOBUF)).expect(201);
    expect(comparable(viaProtobuf.text)).toEqual(comparable(viaJson.text));
  });

  it('carry evictions, token requests and options of a deletion', async () => {
    const send = (
      method: string,
      target: string,
      body: JsonObject & { apiVersion: string; kind: string },
      schema: Schema,
    ): Promise<Answer> => api.request(method, target, { body: encodeProtobuf(body, schema), headers: PROTOBUF });
    const pods = `/api/v1/namespaces/${room}/pods`;
    (await post(pods, pod('evicted'))).expect(201);
    const eviction = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'evicted', namespace: room },
      deleteOptions: { gracePeriodSeconds: 0 },
    };
    (await send('POST', `${pods}/evicted/eviction`, eviction, evictionSchema)).expect(201);
    (await api.request('GET', `${pods}/evicted`)).expect(404);
    const token = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: {},
      spec: { audiences: [], expirationSeconds: 700 },
    };
    const issued = await send(
      'POST',
      `/api/v1/namespaces/${room}/serviceaccounts/default/token`,
      token,
      tokenRequestSchema,
    );
    expect(issued.expect(201).json.status.token).toMatch(/^ey/);
    const { metadata } = (await post(path, configMap('pb-doomed'))).expect(201).json;
    const options = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid: 'e0b4b3c5-0000-4000-8000-000000000000' },
    };
    expect((await send('DELETE', `${path}/pb-doomed`, options, deleteOptionsSchema)).status).toBe(409);
    (
      await send(
        'DELETE',
        `${path}/pb-doomed`,
        { ...options, preconditions: { uid: metadata.uid } },
        deleteOptionsSchema,
      )
    ).expect(200);
  });

  it('that are cut off are refused', async () => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'cut' }, data: { k: 'v' } };
    const whole = encodeProtobuf(
      body,
      builtinDefinitions.find((each) => each.plural === 'configmaps')?.schema as Schema,
    );
    const { revision } = api.store;
    // The last four bytes are two empty texts that may as well be missing.
    for (let length = 1; length < whole.length - 4; length++) {
      const answer = await post(path, whole.slice(0, length), PROTOBUF);
      expect([length, [400, 422].includes(answer.status)]).toEqual([length, true]);
    }
    expect(api.store.revision).toBe(revision);
  });
});

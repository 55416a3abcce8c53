import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../meta.ts';
import { objectAt } from '../fields.ts';
import { created, defaultedPod, object } from '../kinds.fixture.ts';
import { applyPodSpecDefaults } from './defaults.ts';
import { podDefinition } from './definition.ts';
import { pullPolicyFor } from './image.ts';
import { qosClassOf } from './qos.ts';

function specOf(spec: JsonObject): JsonObject {
  return objectAt(defaultedPod(podDefinition, spec), 'spec') ?? {};
}

describe('defaults of a pod', () => {
  it('completes the smallest pod as kube-apiserver does', () => {
    const pod = created(podDefinition, object('Pod', { spec: { containers: [{ name: 'app', image: 'nginx' }] } }));
    expect(pod['spec']).toEqual({
      containers: [
        {
          name: 'app',
          image: 'nginx',
          imagePullPolicy: 'Always',
          resources: {},
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
        },
      ],
      dnsPolicy: 'ClusterFirst',
      enableServiceLinks: true,
      restartPolicy: 'Always',
      schedulerName: 'default-scheduler',
      securityContext: {},
      terminationGracePeriodSeconds: 30,
    });
    expect(pod['status']).toEqual({ phase: 'Pending', qosClass: 'BestEffort' });
  });

  it('keeps what is given, also zero and false', () => {
    const spec = specOf({
      restartPolicy: 'Never',
      dnsPolicy: 'Default',
      terminationGracePeriodSeconds: 0,
      schedulerName: 'mine',
      enableServiceLinks: false,
    });
    expect(spec).toMatchObject({
      restartPolicy: 'Never',
      dnsPolicy: 'Default',
      terminationGracePeriodSeconds: 0,
      schedulerName: 'mine',
      enableServiceLinks: false,
    });
  });

  it('ends who would be given less than no time as soon as is graceful', () =>
    expect(specOf({ terminationGracePeriodSeconds: -5 })['terminationGracePeriodSeconds']).toBe(1));

  it('treats an empty string as absent', () => {
    expect(specOf({ restartPolicy: '' })['restartPolicy']).toBe('Always');
  });

  it('changes nothing the second time', () => {
    const pod = defaultedPod(podDefinition, { volumes: [{ name: 'v', configMap: { name: 'c' } }] });
    const before = JSON.stringify(pod);
    podDefinition.strategy?.applyDefaults?.(pod);
    expect(JSON.stringify(pod)).toBe(before);
  });

  it('gives both names of the service account', () => {
    expect(specOf({ serviceAccount: 'x' })).toMatchObject({ serviceAccount: 'x', serviceAccountName: 'x' });
    expect(specOf({ serviceAccountName: 'y' })).toMatchObject({ serviceAccount: 'y', serviceAccountName: 'y' });
  });

  it('fills probes, hooks, ports and references', () => {
    const spec = specOf({
      containers: [
        {
          name: 'app',
          image: 'app:1',
          ports: [{ containerPort: 80 }, { containerPort: 53, protocol: 'UDP' }],
          livenessProbe: { httpGet: { port: 80 } },
          readinessProbe: { exec: { command: ['true'] }, periodSeconds: 5 },
          startupProbe: { grpc: { port: 90 } },
          lifecycle: { preStop: { httpGet: { port: 'web', path: '/stop' } } },
          env: [
            { name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
            { name: 'B', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1000m' } } },
            { name: 'C', valueFrom: { resourceFieldRef: { resource: 'limits.memory' } } },
          ],
        },
      ],
    });
    const thresholds = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };
    expect(spec['containers']).toMatchObject([
      {
        imagePullPolicy: 'IfNotPresent',
        ports: [
          { containerPort: 80, protocol: 'TCP' },
          { containerPort: 53, protocol: 'UDP' },
        ],
        livenessProbe: { ...thresholds, httpGet: { port: 80, path: '/', scheme: 'HTTP' } },
        readinessProbe: { ...thresholds, periodSeconds: 5 },
        startupProbe: { ...thresholds, grpc: { port: 90, service: '' } },
        lifecycle: { preStop: { httpGet: { port: 'web', path: '/stop', scheme: 'HTTP' } } },
        env: [
          { valueFrom: { fieldRef: { apiVersion: 'v1' } } },
          { valueFrom: { resourceFieldRef: { divisor: '1' } } },
          { valueFrom: { resourceFieldRef: { divisor: '0' } } },
        ],
      },
    ]);
  });

  it('fills volumes', () => {
    const spec = specOf({
      volumes: [
        { name: 'nothing' },
        { name: 'secret', secret: { secretName: 's' } },
        { name: 'config', configMap: { name: 'c', defaultMode: 256 } },
        { name: 'host', hostPath: { path: '/' } },
        { name: 'sized', emptyDir: { sizeLimit: '0.5Gi' } },
        { name: 'image', image: { reference: 'data' } },
        {
          name: 'projected',
          projected: {
            sources: [
              { serviceAccountToken: { path: 'token' } },
              { downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
            ],
          },
        },
        {
          name: 'claim',
          ephemeral: { volumeClaimTemplate: { spec: { resources: { requests: { storage: '1024Mi' } } } } },
        },
      ],
    });
    expect(spec['volumes']).toMatchObject([
      { emptyDir: {} },
      { secret: { defaultMode: 0o644 } },
      { configMap: { defaultMode: 256 } },
      { hostPath: { path: '/', type: '' } },
      { emptyDir: { sizeLimit: '512Mi' } },
      { image: { pullPolicy: 'Always' } },
      {
        projected: {
          defaultMode: 0o644,
          sources: [
            { serviceAccountToken: { expirationSeconds: 3600 } },
            { downwardAPI: { items: [{ fieldRef: { apiVersion: 'v1' } }] } },
          ],
        },
      },
      {
        ephemeral: {
          volumeClaimTemplate: { spec: { volumeMode: 'Filesystem', resources: { requests: { storage: '1Gi' } } } },
        },
      },
    ]);
  });

  it('requests what is limited, in canonical form', () => {
    const resources = { limits: { cpu: 0.5, memory: '1.5Gi' }, requests: { memory: '1073741824' } };
    const spec = specOf({ containers: [{ name: 'app', image: 'a', resources }] });
    expect(spec['containers']).toMatchObject([
      { resources: { limits: { cpu: '500m', memory: '1536Mi' }, requests: { cpu: '500m', memory: '1073741824' } } },
    ]);
  });

  it('does not do that in templates', () => {
    const spec: JsonObject = { containers: [{ name: 'app', image: 'a', resources: { limits: { cpu: '1' } } }] };
    applyPodSpecDefaults(spec);
    expect(spec['containers']).toMatchObject([{ resources: { limits: { cpu: '1' } } }]);
    expect(JSON.stringify(spec)).not.toContain('requests');
    expect(spec['enableServiceLinks']).toBeUndefined();
  });

  it('opens host ports in the network of the host', () => {
    const containers = [{ name: 'app', image: 'a', ports: [{ containerPort: 80 }] }];
    expect(specOf({ hostNetwork: true, containers })['containers']).toMatchObject([{ ports: [{ hostPort: 80 }] }]);
  });

  it('completes resources of the whole pod', () => {
    const containers = [{ name: 'app', image: 'a', resources: { requests: { cpu: '200m' } } }];
    const spec = specOf({ containers, resources: { limits: { cpu: '1', memory: '1Gi' } } });
    expect(spec['resources']).toEqual({
      limits: { cpu: '1', memory: '1Gi' },
      requests: { cpu: '200m', memory: '1Gi' },
    });
  });

  it('says why a gated pod is not scheduled', () => {
    const pod = defaultedPod(podDefinition, { schedulingGates: [{ name: 'example.com/wait' }] });
    expect(pod['status']).toMatchObject({
      conditions: [
        {
          type: 'PodScheduled',
          reason: 'SchedulingGated',
          lastTransitionTime: pod.metadata.creationTimestamp ?? null,
        },
      ],
    });
  });

  it('survives wrong types, which the schema reports', () => {
    const strange = object('Pod', { spec: { containers: 'x', volumes: [1, null, 'a'], securityContext: [] } });
    expect(() => created(podDefinition, strange)).not.toThrow();
    expect(() => created(podDefinition, object('Pod', { spec: [] }))).not.toThrow();
    expect(() => podDefinition.strategy?.validate?.(strange)).not.toThrow();
  });

  it('treats a resource named __proto__ as data', () => {
    const limits = JSON.parse('{"__proto__": "1", "constructor": "2"}') as JsonObject;
    const spec = specOf({ containers: [{ name: 'app', image: 'a', resources: { limits } }] });
    expect(JSON.stringify(spec)).toContain('"requests":{"__proto__":"1","constructor":"2"}');
    expect(({} as Record<string, unknown>)['1']).toBeUndefined();
  });
});

describe('pullPolicyFor', () => {
  it.each([
    ['nginx', 'Always'],
    ['nginx:latest', 'Always'],
    ['nginx:1.2', 'IfNotPresent'],
    ['registry:5000/nginx', 'Always'],
    ['registry:5000/nginx:1', 'IfNotPresent'],
    ['nginx@sha256:abc', 'IfNotPresent'],
    ['nginx:latest@sha256:abc', 'Always'],
    ['', 'IfNotPresent'],
  ])('%s: %s', (image, policy) => {
    expect(pullPolicyFor(image)).toBe(policy);
  });
});

describe('qosClassOf', () => {
  const podWith = (...resources: JsonObject[]): JsonObject => ({
    containers: resources.map((each) => ({ resources: each })),
  });
  const full = { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '1000m', memory: '1Gi' } };
  it.each<[string, JsonObject]>([
    ['BestEffort', podWith({})],
    ['BestEffort', podWith({ requests: { cpu: '0' } })],
    ['BestEffort', podWith({ limits: { 'example.com/gpu': '1' } })],
    ['Guaranteed', podWith(full)],
    ['Guaranteed', podWith(full, full)],
    ['Burstable', podWith(full, {})],
    ['Burstable', podWith({ requests: { cpu: '1' } })],
    ['Burstable', podWith({ ...full, requests: { cpu: '500m', memory: '1Gi' } })],
    ['Burstable', podWith({ limits: { cpu: '1' }, requests: { cpu: '1' } })],
    ['Guaranteed', { ...podWith({}), resources: full }],
  ])('%s for %j', (qosClass, spec) => {
    expect(qosClassOf(spec)).toBe(qosClass);
  });
});

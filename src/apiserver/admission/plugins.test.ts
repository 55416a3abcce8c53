import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../registry/contract.ts';
import { AdmissionChain, type ReinvokingPlugin } from './chain.ts';
import { DefaultTolerations } from './default-tolerations.ts';
import {
  attributesOf,
  claims,
  configMaps,
  FakeRegistry,
  fakeDefinition,
  namespaces,
  nodes,
  pods,
  priorityClasses,
} from './fake-registry.fixture.ts';
import { NamespaceLifecycle } from './namespace-lifecycle.ts';
import { Priority } from './priority.ts';
import { ServiceAccountAdmission } from './service-account.ts';
import { StorageDefaultClass } from './storage-default-class.ts';

function object(kind: string, name: string, fields: Record<string, unknown> = {}, namespace = 'ns'): KubeObject {
  const metadata = { name, ...(namespace === '' ? {} : { namespace }) };
  return { apiVersion: 'v1', kind, metadata, ...fields } as KubeObject;
}

function pod(spec: Record<string, unknown> = {}, annotations?: Record<string, string>): KubeObject {
  const made = object('Pod', 'p', { spec: { containers: [], ...spec } });
  if (annotations) made.metadata.annotations = annotations;
  return made;
}

/** Runs one plug-in as the chain would; answers the refusal. */
async function refused(plugin: AdmissionPlugin, attributes: AdmissionAttributes): Promise<ApiError | undefined> {
  const chain = new AdmissionChain([plugin]);
  try {
    await chain.mutate(attributes);
    await chain.validate(attributes);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    return error as ApiError;
  }
}

const specOf = ({ object }: AdmissionAttributes): unknown => object?.['spec'];

describe('AdmissionChain', () => {
  function recorder(name: string, log: string[], more: Partial<ReinvokingPlugin> = {}): AdmissionPlugin {
    return {
      name,
      handles: () => true,
      mutate: async () => void log.push(`mutate ${name}`),
      validate: async () => void log.push(`validate ${name}`),
      ...more,
    };
  }
  const attributes = attributesOf(pods, pod());

  it('runs the plug-ins in order, mutating ones apart from validating ones, and only those that handle it', async () => {
    const log: string[] = [];
    const chain = new AdmissionChain([
      recorder('a', log),
      recorder('b', log, { handles: () => false }),
      recorder('c', log, { mutate: undefined }),
    ]);
    await chain.mutate(attributes);
    await chain.validate(attributes);
    expect(log).toEqual(['mutate a', 'validate a', 'validate c']);
  });

  it('stops at the first refusal', async () => {
    const log: string[] = [];
    const refusal = new ApiError(403, 'Forbidden', 'no');
    const chain = new AdmissionChain([
      recorder('a', log, { mutate: () => Promise.reject(refusal) }),
      recorder('b', log),
    ]);
    await expect(chain.mutate(attributes)).rejects.toBe(refusal);
    expect(log).toEqual([]);
  });

  it('runs all mutating plug-ins a second time, not a third, when one asks for it', async () => {
    const log: string[] = [];
    const chain = new AdmissionChain([recorder('a', log), recorder('b', log, { needsReinvocation: () => true })]);
    await chain.mutate(attributes);
    expect(log).toEqual(['mutate a', 'mutate b', 'mutate a', 'mutate b']);
  });
});

describe('NamespaceLifecycle', () => {
  function scene(): [FakeRegistry, NamespaceLifecycle] {
    const registry = new FakeRegistry();
    registry.put('namespaces', object('Namespace', 'ns', { status: { phase: 'Active' } }, ''));
    registry.put('namespaces', object('Namespace', 'going', { status: { phase: 'Terminating' } }, ''));
    return [registry, new NamespaceLifecycle(registry)];
  }
  const configMap = (namespace: string) => object('ConfigMap', 'c', {}, namespace);

  it('refuses what is created or updated in a namespace that does not exist', async () => {
    const [, plugin] = scene();
    for (const operation of ['CREATE', 'UPDATE'] as const) {
      const error = await refused(plugin, attributesOf(configMaps, configMap('nope'), { operation }));
      expect(error?.toStatus()).toMatchObject({
        code: 404,
        reason: 'NotFound',
        message: 'namespaces "nope" not found',
        details: { name: 'nope', kind: 'namespaces' },
      });
    }
  });

  it('refuses creation in a terminating namespace, with the cause', async () => {
    const [, plugin] = scene();
    const error = await refused(plugin, attributesOf(configMaps, configMap('going')));
    expect(error?.toStatus()).toMatchObject({
      code: 403,
      reason: 'Forbidden',
      message:
        'configmaps "c" is forbidden: unable to create new content in namespace going because it is being terminated',
      details: {
        name: 'c',
        kind: 'configmaps',
        causes: [
          {
            reason: 'NamespaceTerminating',
            message: 'namespace going is being terminated',
            field: 'metadata.namespace',
          },
        ],
      },
    });
  });

  it.each([
    ['creation in a live namespace', attributesOf(configMaps, configMap('ns'))],
    ['updates in a terminating one', attributesOf(configMaps, configMap('going'), { operation: 'UPDATE' })],
    [
      'deletion in a terminating one',
      attributesOf(configMaps, undefined, { operation: 'DELETE', oldObject: configMap('going') }),
    ],
    [
      'deletion in a lost one',
      attributesOf(configMaps, undefined, { operation: 'DELETE', oldObject: configMap('nope') }),
    ],
    ['cluster-scoped objects', attributesOf(nodes, object('Node', 'n', {}, ''))],
    ['namespaces themselves', attributesOf(namespaces, object('Namespace', 'new', {}, ''))],
    [
      'questions about permissions in a lost one',
      attributesOf(
        fakeDefinition('authorization.k8s.io', 'v1', 'localsubjectaccessreviews', 'LocalSubjectAccessReview'),
        configMap('nope'),
      ),
    ],
  ])('lets %s pass', async (_, attributes) => {
    const [, plugin] = scene();
    expect(await refused(plugin, attributes)).toBeUndefined();
  });

  it.each([
    ['default', true],
    ['kube-system', true],
    ['kube-public', true],
    ['kube-node-lease', true],
    ['ns', false],
  ])('deletion of namespace %s is refused: %s', async (name, isRefused) => {
    const [, plugin] = scene();
    const oldObject = object('Namespace', name, {}, '');
    const error = await refused(plugin, attributesOf(namespaces, undefined, { operation: 'DELETE', oldObject }));
    expect(error?.message).toBe(
      isRefused ? `namespaces "${name}" is forbidden: this namespace may not be deleted` : undefined,
    );
  });

  it('names an object without a name by its generateName', async () => {
    const [, plugin] = scene();
    const nameless = configMap('going');
    nameless.metadata = { generateName: 'gen-', namespace: 'going' };
    const error = await refused(plugin, attributesOf(configMaps, nameless));
    expect(error?.message).toMatch(/^configmaps "gen-" is forbidden/);
  });
});

describe('ServiceAccountAdmission', () => {
  function scene(): ServiceAccountAdmission {
    const registry = new FakeRegistry();
    registry.put('serviceaccounts', object('ServiceAccount', 'robot', { imagePullSecrets: [{ name: 'pull' }] }));
    return new ServiceAccountAdmission(registry);
  }

  it.each([
    ['none', {}, { serviceAccountName: 'default', serviceAccount: 'default' }],
    ['the old field alone', { serviceAccount: 'robot' }, { serviceAccountName: 'robot', serviceAccount: 'robot' }],
    ['a name', { serviceAccountName: 'robot' }, { serviceAccountName: 'robot', serviceAccount: 'robot' }],
  ])('completes a pod with %s', async (_, spec, expected) => {
    const attributes = attributesOf(pods, pod(spec));
    expect(await refused(scene(), attributes)).toBeUndefined();
    expect(specOf(attributes)).toMatchObject(expected);
  });

  it('adds the pull secrets of the account unless the pod brings its own', async () => {
    const without = attributesOf(pods, pod({ serviceAccountName: 'robot' }));
    const own = attributesOf(pods, pod({ serviceAccountName: 'robot', imagePullSecrets: [{ name: 'mine' }] }));
    await refused(scene(), without);
    await refused(scene(), own);
    expect(specOf(without)).toMatchObject({ imagePullSecrets: [{ name: 'pull' }] });
    expect(specOf(own)).toMatchObject({ imagePullSecrets: [{ name: 'mine' }] });
  });

  it('refuses an account that does not exist', async () => {
    const error = await refused(scene(), attributesOf(pods, pod({ serviceAccountName: 'ghost' })));
    expect([error?.code, error?.message]).toEqual([
      403,
      'pods "p" is forbidden: error looking up service account ns/ghost: serviceaccount "ghost" not found',
    ]);
  });

  it('leaves mirror pods alone, which may not have one', async () => {
    const mirror = { 'kubernetes.io/config.mirror': 'x' };
    const plain = attributesOf(pods, pod({}, mirror));
    expect(await refused(scene(), plain)).toBeUndefined();
    expect(specOf(plain)).toEqual({ containers: [] });
    const error = await refused(scene(), attributesOf(pods, pod({ serviceAccountName: 'robot' }, mirror)));
    expect(error?.message).toBe('pods "p" is forbidden: a mirror pod may not reference service accounts');
  });

  it('does not look at updates and subresources', () => {
    expect(scene().handles(attributesOf(pods, pod(), { operation: 'UPDATE' }))).toBe(false);
    expect(scene().handles(attributesOf(pods, pod(), { subresource: 'eviction' }))).toBe(false);
  });
});

describe('Priority', () => {
  function scene(...classes: [string, number, Record<string, unknown>?][]): Priority {
    const registry = new FakeRegistry();
    for (const [name, value, more] of classes) {
      registry.put('priorityclasses.scheduling.k8s.io', object('PriorityClass', name, { value, ...more }, ''));
    }
    return new Priority(registry);
  }

  it.each([
    ['no class and no default', scene(), {}, { priority: 0, preemptionPolicy: 'PreemptLowerPriority' }],
    [
      'a class',
      scene(['high', 1000, { preemptionPolicy: 'Never' }]),
      { priorityClassName: 'high' },
      { priority: 1000, preemptionPolicy: 'Never', priorityClassName: 'high' },
    ],
    [
      'the global default',
      scene(['high', 1000], ['std', 5, { globalDefault: true, preemptionPolicy: 'PreemptLowerPriority' }]),
      {},
      { priority: 5, priorityClassName: 'std', preemptionPolicy: 'PreemptLowerPriority' },
    ],
    [
      'the lower of two defaults',
      scene(['a', 9, { globalDefault: true }], ['b', 5, { globalDefault: true }]),
      {},
      { priority: 5, priorityClassName: 'b' },
    ],
    [
      'system-node-critical, stored or not',
      scene(),
      { priorityClassName: 'system-node-critical' },
      { priority: 2_000_001_000, preemptionPolicy: 'PreemptLowerPriority' },
    ],
    ['system-cluster-critical', scene(), { priorityClassName: 'system-cluster-critical' }, { priority: 2_000_000_000 }],
    [
      'the right number given along',
      scene(['high', 1000]),
      { priorityClassName: 'high', priority: 1000 },
      { priority: 1000 },
    ],
  ])('resolves %s', async (_, plugin, spec, expected) => {
    const attributes = attributesOf(pods, pod(spec));
    expect(await refused(plugin, attributes)).toBeUndefined();
    expect(specOf(attributes)).toMatchObject(expected);
  });

  it.each([
    ['an unknown class', { priorityClassName: 'x' }, 'no PriorityClass with name x was found'],
    [
      'another number',
      { priority: 7 },
      'the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name',
    ],
    [
      'another policy',
      { preemptionPolicy: 'Never' },
      'the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name',
    ],
  ])('refuses %s', async (_, spec, detail) => {
    const error = await refused(scene(), attributesOf(pods, pod(spec)));
    expect([error?.code, error?.message]).toEqual([403, `pods "p" is forbidden: ${detail}`]);
  });

  it('keeps what it computed when an update leaves it out', async () => {
    const oldObject = pod({ priority: 5, preemptionPolicy: 'Never' });
    const attributes = attributesOf(pods, pod(), { operation: 'UPDATE', oldObject });
    await refused(scene(), attributes);
    expect(specOf(attributes)).toMatchObject({ priority: 5, preemptionPolicy: 'Never' });
  });

  it('allows one global default', async () => {
    const plugin = scene(['std', 5, { globalDefault: true }]);
    const second = object('PriorityClass', 'other', { value: 1, globalDefault: true }, '');
    const error = await refused(plugin, attributesOf(priorityClasses, second));
    expect(error?.message).toBe(
      'priorityclasses.scheduling.k8s.io "other" is forbidden: PriorityClass std is already marked as default. Only one default can exist',
    );
    const same = object('PriorityClass', 'std', { value: 5, globalDefault: true }, '');
    expect(await refused(plugin, attributesOf(priorityClasses, same, { operation: 'UPDATE' }))).toBeUndefined();
    const plain = object('PriorityClass', 'other', { value: 1 }, '');
    expect(await refused(plugin, attributesOf(priorityClasses, plain))).toBeUndefined();
  });
});

describe('DefaultTolerations', () => {
  const both = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
  const added = (key: string) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 });

  it.each([
    ['nothing', [], both],
    ['something else', [{ key: 'x', operator: 'Exists' }], both],
    ['one of them', [{ key: both[0], operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 7 }], [both[1]]],
    ['one of them for all effects', [{ key: both[1], operator: 'Exists' }], [both[0]]],
    ['one of them for NoSchedule only', [{ key: both[1], operator: 'Exists', effect: 'NoSchedule' }], both],
    ['everything', [{ operator: 'Exists' }], []],
  ])('a pod that tolerates %s', async (_, tolerations, missing) => {
    const attributes = attributesOf(pods, pod(tolerations.length === 0 ? {} : { tolerations }));
    await refused(new DefaultTolerations(), attributes);
    const expected = [...tolerations, ...missing.map((key) => added(key ?? ''))];
    expect((specOf(attributes) as { tolerations: unknown }).tolerations).toEqual(expected);
  });
});

describe('StorageDefaultClass', () => {
  const claim = (spec: Record<string, unknown> = {}) => object('PersistentVolumeClaim', 'c', { spec });
  function scene(...classes: [name: string, created: string, annotation?: string][]): StorageDefaultClass {
    const registry = new FakeRegistry();
    for (const [name, creationTimestamp, annotation] of classes) {
      const made = object('StorageClass', name, {}, '');
      made.metadata.creationTimestamp = creationTimestamp;
      if (annotation) made.metadata.annotations = { [annotation]: 'true' };
      registry.put('storageclasses.storage.k8s.io', made);
    }
    return new StorageDefaultClass(registry);
  }
  const IS_DEFAULT = 'storageclass.kubernetes.io/is-default-class';
  const BETA = 'storageclass.beta.kubernetes.io/is-default-class';

  it.each([
    ['without classes', scene(), {}, undefined],
    ['without a default', scene(['a', '2026-01-01T00:00:00Z']), {}, undefined],
    ['with a default', scene(['a', '2026-01-01T00:00:00Z', IS_DEFAULT]), {}, 'a'],
    ['with a default of old', scene(['a', '2026-01-01T00:00:00Z', BETA]), {}, 'a'],
    [
      'with several: the newest',
      scene(['a', '2026-01-01T00:00:00Z', IS_DEFAULT], ['b', '2026-01-02T00:00:00Z', IS_DEFAULT]),
      {},
      'b',
    ],
    [
      'with several of one age: the first by name',
      scene(['b', '2026-01-01T00:00:00Z', IS_DEFAULT], ['a', '2026-01-01T00:00:00Z', IS_DEFAULT]),
      {},
      'a',
    ],
    ['with one named', scene(['a', '2026-01-01T00:00:00Z', IS_DEFAULT]), { storageClassName: 'z' }, 'z'],
    ['with none wanted', scene(['a', '2026-01-01T00:00:00Z', IS_DEFAULT]), { storageClassName: '' }, ''],
  ])('a claim %s', async (_, plugin, spec, expected) => {
    const attributes = attributesOf(claims, claim(spec));
    await refused(plugin, attributes);
    expect((specOf(attributes) as { storageClassName?: string }).storageClassName).toBe(expected);
  });

  it('respects the annotation that came before the field', async () => {
    const annotated = claim();
    annotated.metadata.annotations = { 'volume.beta.kubernetes.io/storage-class': 'old' };
    const attributes = attributesOf(claims, annotated);
    await refused(scene(['a', '2026-01-01T00:00:00Z', IS_DEFAULT]), attributes);
    expect(specOf(attributes)).toEqual({});
  });
});

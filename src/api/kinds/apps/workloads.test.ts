import { describe, expect, it } from 'vitest';
import { created, createErrors, statusErrors, updateErrors } from '../test-kinds.ts';
import { controllerRevisionDefinition } from './controller-revision.ts';
import { daemonSetDefinition } from './daemon-set.ts';
import { deploymentDefinition } from './deployment.ts';
import { replicaSetDefinition } from './replica-set.ts';
import { statefulSetDefinition } from './stateful-set.ts';

const selector = { matchLabels: { app: 'a' } };
const template = {
  metadata: { labels: { app: 'a' } },
  spec: { containers: [{ name: 'c', image: 'i', terminationMessagePolicy: 'File', imagePullPolicy: 'Always' }] },
};
const fresh = (spec: object = {}): { spec: object } => copyOf({ spec: { selector, template, ...spec } });

/** Defaults write into what they are given. */
function copyOf<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

const workloads = [
  ['deployment', deploymentDefinition, 'ReplicaSet'],
  ['replicaset', replicaSetDefinition, 'ReplicaSet'],
  ['statefulset', statefulSetDefinition, 'StatefulSet'],
  ['daemonset', daemonSetDefinition, 'DaemonSet'],
] as const;

describe.each(workloads)('a %s', (workload, definition, templateOwner) => {
  it('is accepted when its selector matches its template', () => {
    expect(createErrors(definition, fresh())).toEqual([]);
  });

  it('has a template with the defaults of pods', () => {
    expect(created(definition, fresh())).toMatchObject({
      spec: { template: { spec: { restartPolicy: 'Always', dnsPolicy: 'ClusterFirst' } } },
    });
  });

  it('starts without a status of its own', () => {
    const { status } = created(definition, { ...fresh(), status: { replicas: 7, numberReady: 7, readyReplicas: 7 } });
    for (const count of Object.values(status as object)) expect(count).toBe(0);
  });

  it.each<[string, object, string]>([
    [
      'an empty selector',
      { selector: {} },
      `spec.selector: Invalid value: {}: empty selector is invalid for ${workload}`,
    ],
    [
      'a selector of other pods',
      { selector: { matchLabels: { app: 'b' } } },
      'spec.template.metadata.labels: Invalid value: {"app":"a"}: `selector` does not match template `labels`',
    ],
    [
      'pods that end',
      { template: { ...template, spec: { ...template.spec, restartPolicy: 'Never' } } },
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ],
    [
      'a deadline for pods',
      { template: { ...template, spec: { ...template.spec, activeDeadlineSeconds: 5 } } },
      `spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ${templateOwner} is not Supported`,
    ],
    [
      'negative seconds',
      { minReadySeconds: -1 },
      'spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0',
    ],
  ])('is refused with %s', (_what, change, error) => {
    expect(createErrors(definition, fresh(change))).toContain(error);
  });

  it('keeps its selector', () => {
    expect(updateErrors(definition, fresh({ minReadySeconds: 3 }), fresh())).toEqual([]);
    expect(updateErrors(definition, fresh({ selector: { matchLabels: { b: 'c' } } }), fresh())).toHaveLength(1);
  });

  it('refuses negative counts in its status', () => {
    const [field = ''] = Object.keys((created(definition, fresh()).status ?? {}) as object);
    if (field === '') return;
    expect(statusErrors(definition, { [field]: -1 })).toContain(
      `status.${field}: Invalid value: -1: must be greater than or equal to 0`,
    );
  });
});

describe('a Deployment', () => {
  it('has the defaults of Kubernetes', () => {
    expect(created(deploymentDefinition, fresh())).toMatchObject({
      spec: {
        replicas: 1,
        revisionHistoryLimit: 10,
        progressDeadlineSeconds: 600,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
      },
    });
    expect(created(deploymentDefinition, fresh({ replicas: 0, strategy: { type: 'Recreate' } }))).toMatchObject({
      spec: { replicas: 0, strategy: { type: 'Recreate' } },
    });
  });

  it.each<[object, string]>([
    [
      { strategy: { type: 'Recreate', rollingUpdate: {} } },
      "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
    ],
    [
      { strategy: { type: 'Other' } },
      'spec.strategy: Unsupported value: {"type":"Other"}: supported values: "Recreate", "RollingUpdate"',
    ],
    [
      { strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: '0%' } } },
      'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0',
    ],
    [
      { strategy: { rollingUpdate: { maxUnavailable: '101%' } } },
      'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
    ],
    [
      { progressDeadlineSeconds: 10, minReadySeconds: 10 },
      'spec.progressDeadlineSeconds: Invalid value: 10: must be greater than minReadySeconds',
    ],
  ])('is refused with %j', (spec, error) => {
    expect(createErrors(deploymentDefinition, fresh(spec))).toEqual([error]);
  });

  it('counts no more parts than there are pods', () => {
    expect(statusErrors(deploymentDefinition, { replicas: 2, readyReplicas: 2, availableReplicas: 1 })).toEqual([]);
    expect(statusErrors(deploymentDefinition, { replicas: 1, readyReplicas: 1, availableReplicas: 2 })).toEqual([
      'status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas',
      'status.availableReplicas: Invalid value: 2: cannot be greater than status.readyReplicas',
    ]);
  });
});

describe('a StatefulSet', () => {
  it('has the defaults of Kubernetes', () => {
    expect(created(statefulSetDefinition, fresh())).toMatchObject({
      spec: {
        replicas: 1,
        podManagementPolicy: 'OrderedReady',
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
        persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
      },
    });
  });

  it('completes the claims that it makes', () => {
    const claim = { metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'] } };
    expect(created(statefulSetDefinition, fresh({ volumeClaimTemplates: [claim] }))).toMatchObject({
      spec: {
        volumeClaimTemplates: [
          {
            apiVersion: 'v1',
            kind: 'PersistentVolumeClaim',
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem' },
            status: { phase: 'Pending' },
          },
        ],
      },
    });
  });

  it('mounts the claims that it makes', () => {
    const mounting = {
      ...template,
      spec: { containers: [{ ...template.spec.containers[0], volumeMounts: [{ name: 'data', mountPath: '/data' }] }] },
    };
    const spec = { template: mounting, volumeClaimTemplates: [{ metadata: { name: 'data' } }] };
    expect(createErrors(statefulSetDefinition, fresh(spec))).toEqual([]);
    expect(createErrors(statefulSetDefinition, fresh({ template: mounting }))).toHaveLength(1);
  });

  it.each<[object, string]>([
    [
      { podManagementPolicy: 'X' },
      `spec.podManagementPolicy: Invalid value: "X": must be 'OrderedReady' or 'Parallel'`,
    ],
    [
      { updateStrategy: { type: 'OnDelete', rollingUpdate: {} } },
      "spec.updateStrategy.rollingUpdate: Invalid value: {}: only allowed for updateStrategy 'RollingUpdate'",
    ],
    [
      { updateStrategy: { type: 'X' } },
      `spec.updateStrategy: Invalid value: {"type":"X"}: must be 'RollingUpdate' or 'OnDelete'`,
    ],
    [
      { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0 } } },
      'spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0',
    ],
    [
      { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'X' } },
      'spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "X": supported values: "Retain", "Delete"',
    ],
    [{ ordinals: { start: -1 } }, 'spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0'],
  ])('is refused with %j', (spec, error) => {
    expect(createErrors(statefulSetDefinition, fresh(spec))).toEqual([error]);
  });

  it('lets only some fields change', () => {
    expect(updateErrors(statefulSetDefinition, fresh({ replicas: 5, ordinals: { start: 1 } }), fresh())).toEqual([]);
    expect(updateErrors(statefulSetDefinition, fresh({ serviceName: 's' }), fresh())[0]).toMatch(
      /^spec: Forbidden: updates to statefulset spec for fields other than/,
    );
  });
});

describe('a DaemonSet', () => {
  it.each<[object, string]>([
    [
      { updateStrategy: { rollingUpdate: { maxUnavailable: 1, maxSurge: 1 } } },
      'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero',
    ],
    [
      { updateStrategy: { rollingUpdate: { maxUnavailable: 0 } } },
      'spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0',
    ],
    [
      { updateStrategy: { type: 'X' } },
      'spec.updateStrategy: Unsupported value: {"type":"X"}: supported values: "RollingUpdate", "OnDelete"',
    ],
  ])('is refused with %j', (spec, error) => {
    expect(createErrors(daemonSetDefinition, fresh(spec))).toEqual([error]);
  });
});

describe('a ControllerRevision', () => {
  it('has data, which stay as they are', () => {
    expect(createErrors(controllerRevisionDefinition, { data: {}, revision: 1 })).toEqual([]);
    expect(createErrors(controllerRevisionDefinition, { revision: -1 })).toEqual([
      'revision: Invalid value: -1: must be greater than or equal to 0',
      'data: Required value: data is mandatory',
    ]);
    expect(updateErrors(controllerRevisionDefinition, { data: { a: 1 } }, { data: {} })).toEqual([
      'data: Invalid value: {"a":1}: field is immutable',
    ]);
  });
});

import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../meta.ts';
import { changed, clone, defaultedPod, lines } from '../kinds.fixture.ts';
import { podDefinition } from './definition.ts';

const { strategy } = podDefinition;

function update(old: KubeObject, changes: { readonly [path: string]: unknown }): string[] {
  return lines(strategy?.validateUpdate?.(changed(old, changes), old) ?? []);
}

describe('updates of a pod', () => {
  const old = defaultedPod(podDefinition, {
    activeDeadlineSeconds: 100,
    tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 }],
    initContainers: [{ name: 'init', image: 'init:1' }],
  });

  it.each<[string, { readonly [path: string]: unknown }]>([
    ['nothing', {}],
    ['images', { 'spec.containers.0.image': 'app:2', 'spec.initContainers.0.image': 'init:2' }],
    ['a nearer deadline', { 'spec.activeDeadlineSeconds': 50 }],
    [
      'more tolerations, and how long',
      {
        'spec.tolerations': [
          { key: 'b', operator: 'Exists' },
          { operator: 'Exists', key: 'a', effect: 'NoExecute', tolerationSeconds: 1 },
        ],
      },
    ],
    ['labels', { 'metadata.labels': { a: 'b' } }],
  ])('may change %s', (_what, changes) => {
    expect(update(old, changes)).toEqual([]);
  });

  it.each<[{ readonly [path: string]: unknown }, string]>([
    [
      { 'spec.activeDeadlineSeconds': 200 },
      'spec.activeDeadlineSeconds: Invalid value: 200: must be less than or equal to previous value',
    ],
    [
      { 'spec.activeDeadlineSeconds': undefined },
      'spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value',
    ],
    [
      { 'spec.tolerations': [] },
      'spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds',
    ],
    [{ 'spec.containers': [] }, 'spec.containers: Forbidden: pod updates may not add or remove containers'],
    [
      { 'spec.initContainers': undefined },
      'spec.initContainers: Forbidden: pod updates may not add or remove containers',
    ],
    [
      { 'spec.schedulingGates': [{ name: 'new' }] },
      `spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'new'`,
    ],
  ])('may not change %j', (changes, message) => {
    expect(update(old, changes)).toEqual([message]);
  });

  it.each<[{ readonly [path: string]: unknown }, RegExp]>([
    [{ 'spec.nodeName': 'node-1' }, /\n\+ {2}nodeName: "node-1"$/],
    [{ 'spec.hostNetwork': true }, /\n\+ {2}hostNetwork: true$/],
    [{ 'spec.restartPolicy': 'Never' }, /\n- {2}restartPolicy: "Always"\n\+ {2}restartPolicy: "Never"$/],
    [{ 'spec.containers.0.command': ['x'] }, /\n\+ {2}containers\[0\]\.command: \["x"\]$/],
    [{ 'spec.terminationGracePeriodSeconds': 1 }, /terminationGracePeriodSeconds: 1$/],
  ])('may change few fields: %j', (changes, diff) => {
    const [message = '', ...others] = update(old, changes);
    expect(others).toEqual([]);
    expect(message).toMatch(
      /^spec: Forbidden: pod updates may not change fields other than `spec\.containers\[\*\]\.image`,`spec\.initContainers\[\*\]\.image`,`spec\.activeDeadlineSeconds`,`spec\.tolerations` \(only additions to existing tolerations\),`spec\.terminationGracePeriodSeconds` \(allow it to be set to 1 if it was previously negative\)\n/,
    );
    expect(message).toMatch(diff);
  });

  it('may end a negative grace period', () => {
    const eternal = changed(old, { 'spec.terminationGracePeriodSeconds': -1 });
    expect(update(eternal, { 'spec.terminationGracePeriodSeconds': 1 })).toEqual([]);
    expect(update(eternal, { 'spec.terminationGracePeriodSeconds': 2 })).toHaveLength(1);
  });
});

describe('a gated pod', () => {
  const terms = [{ matchExpressions: [{ key: 'a', operator: 'Exists' }] }];
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const old = defaultedPod(podDefinition, {
    schedulingGates: [{ name: 'a' }, { name: 'b' }],
    nodeSelector: { disk: 'ssd' },
    affinity: { nodeAffinity: { [required]: { nodeSelectorTerms: terms } } },
  });

  it('may lose gates, and learn more about where to run', () => {
    expect(update(old, { 'spec.schedulingGates': [{ name: 'b' }] })).toEqual([]);
    expect(update(old, { 'spec.schedulingGates': undefined })).toEqual([]);
    expect(update(old, { 'spec.nodeSelector': { disk: 'ssd', zone: 'x' } })).toEqual([]);
    const more = [{ matchExpressions: [...(terms[0]?.matchExpressions ?? []), { key: 'b', operator: 'Exists' }] }];
    expect(update(old, { [`spec.affinity.nodeAffinity.${required}.nodeSelectorTerms`]: more })).toEqual([]);
  });

  it('may not unlearn', () => {
    expect(update(old, { 'spec.nodeSelector': { zone: 'x' } })).toEqual([
      'spec.nodeSelector: Invalid value: {"zone":"x"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)',
    ]);
    expect(update(old, { [`spec.affinity.nodeAffinity.${required}.nodeSelectorTerms`]: [{}] })).toEqual([
      expect.stringMatching(/only additions are allowed \(no mutations or deletions\)$/),
    ]);
    expect(update(old, { 'spec.affinity': undefined })).toEqual([
      expect.stringMatching(/no additions\/deletions to non-empty NodeSelectorTerms list are allowed$/),
    ]);
  });
});

describe('the door ephemeralcontainers', () => {
  const old = changed(defaultedPod(podDefinition), { 'spec.ephemeralContainers': [{ name: 'debug', image: 'a' }] });
  const write = (changes: { readonly [path: string]: unknown }): { pod: KubeObject; errors: string[] } => {
    const pod = changed(old, changes);
    strategy?.prepareForSubresourceUpdate?.('ephemeralcontainers', pod, old);
    return { pod, errors: lines(strategy?.validateSubresourceUpdate?.('ephemeralcontainers', pod, old) ?? []) };
  };

  it('lets containers be added and nothing else be changed', () => {
    const added = [
      { name: 'debug', image: 'a' },
      { name: 'more', image: 'b' },
    ];
    const { pod, errors } = write({
      'spec.ephemeralContainers': added,
      'spec.nodeName': 'elsewhere',
      'metadata.labels': { a: 'b' },
      'status.phase': 'Failed',
    });
    expect(errors).toEqual([]);
    expect(pod).toEqual(changed(old, { 'spec.ephemeralContainers': added }));
  });

  it('lets none be removed or changed', () => {
    expect(write({ 'spec.ephemeralContainers': [] }).errors).toEqual([
      'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be removed\n',
    ]);
    expect(write({ 'spec.ephemeralContainers.0.image': 'b' }).errors).toEqual([
      'spec.ephemeralContainers: Forbidden: existing ephemeral containers "debug" may not be changed\n-  image: "a"\n+  image: "b"',
    ]);
  });
});

describe('updates of the status', () => {
  const old = changed(defaultedPod(podDefinition, { restartPolicy: 'Never' }), {
    'status.containerStatuses': [{ name: 'app', state: { terminated: { exitCode: 0 } } }],
    'status.observedGeneration': 3,
  });
  const write = (changes: { readonly [path: string]: unknown }): string[] => {
    const pod = changed(old, changes);
    strategy?.prepareForStatusUpdate?.(pod, old);
    return lines(strategy?.validateStatusUpdate?.(pod, old) ?? []);
  };

  it('keeps what a writer left out', () => {
    const pod = clone(old);
    pod['status'] = { phase: 'Running' };
    strategy?.prepareForStatusUpdate?.(pod, old);
    expect(pod['status']).toEqual({ phase: 'Running', qosClass: 'BestEffort', observedGeneration: 3 });
  });

  it('mirrors the address of the pod', () => {
    const pod = changed(old, { 'status.podIP': '10.0.0.1' });
    strategy?.applyDefaults?.(pod);
    expect(pod['status']).toMatchObject({ podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }] });
    const other = changed(old, { 'status.podIPs': [{ ip: '10.0.0.2' }] });
    strategy?.applyDefaults?.(other);
    expect(other['status']).toMatchObject({ podIP: '10.0.0.2' });
  });

  it.each<[{ readonly [path: string]: unknown }, string]>([
    [
      { 'status.containerStatuses': [{ name: 'app', state: { running: {} } }] },
      'status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state',
    ],
    [{ 'status.qosClass': 'Guaranteed' }, 'status.qosClass: Invalid value: "Guaranteed": field is immutable'],
    [
      { 'status.podIPs': [{ ip: 'x' }] },
      'status.podIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
    [
      { 'status.podIPs': [{ ip: '1.1.1.1' }, { ip: '1.1.1.2' }] },
      'status.podIPs: Invalid value: [{"ip":"1.1.1.1"},{"ip":"1.1.1.2"}]: may specify no more than one IP for each IP family',
    ],
    [
      { 'status.hostIP': '1.1.1.1', 'status.hostIPs': [{ ip: '1.1.1.2' }] },
      'status.hostIPs[0].ip: Invalid value: "1.1.1.2": must be equal to `hostIP`',
    ],
    [
      { 'status.observedGeneration': -1 },
      'status.observedGeneration: Invalid value: -1: must be a non-negative integer',
    ],
  ])('refuses %j', (changes, message) => {
    expect(write(changes)).toEqual([message]);
  });

  it('wants qualified names for conditions of others', () => {
    expect(
      write({
        'status.conditions': [
          { type: 'Ready', status: 'True' },
          { type: 'a b', status: 'True' },
        ],
      }),
    ).toEqual([
      expect.stringMatching(/^status\.conditions\[1\]\.Type: Invalid value: "a b": name part must consist of/),
    ]);
  });

  it('does not nominate a node for a bound pod', () => {
    const bound = changed(old, { 'spec.nodeName': 'n' });
    const pod = changed(bound, { 'status.nominatedNodeName': 'm' });
    expect(lines(strategy?.validateStatusUpdate?.(pod, bound) ?? [])).toEqual([
      'status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node',
    ]);
  });
});

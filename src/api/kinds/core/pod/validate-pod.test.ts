import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../meta.ts';
import { podTemplateErrors } from '../pod-template.ts';
import { defaultedPod, lines } from '../kinds.fixture.ts';
import { podDefinition } from './definition.ts';

function errorsOf(spec: JsonObject, annotations: Record<string, string> = {}): string[] {
  return lines(podDefinition.strategy?.validate?.(defaultedPod(podDefinition, spec, { annotations })) ?? []);
}

/** The errors of a pod whose one container has these fields. */
function errorsOfContainer(container: JsonObject): string[] {
  return errorsOf({ containers: [{ name: 'app', image: 'app:1', ...container }] });
}

const C = 'spec.containers[0]';

describe('a rich pod', () => {
  it('is accepted', () => {
    expect(
      errorsOf({
        serviceAccountName: 'robot',
        nodeSelector: { disk: 'ssd' },
        tolerations: [
          { operator: 'Exists' },
          { key: 'a', operator: 'Equal', value: 'b', effect: 'NoExecute', tolerationSeconds: 0 },
        ],
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a'] }] },
                { matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node-1'] }] },
              ],
            },
          },
          podAntiAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 100, podAffinityTerm: { topologyKey: 'zone', labelSelector: { matchLabels: { a: 'b' } } } },
            ],
          },
        },
        topologySpreadConstraints: [
          { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', minDomains: 2 },
        ],
        dnsPolicy: 'None',
        dnsConfig: {
          nameservers: ['1.2.3.4', '2001:db8::1'],
          searches: ['a_b.example.com.'],
          options: [{ name: 'ndots' }],
        },
        hostAliases: [{ ip: '127.0.0.1', hostnames: ['a.b'] }],
        readinessGates: [{ conditionType: 'example.com/ready' }],
        securityContext: { runAsUser: 1000, fsGroup: 0, sysctls: [{ name: 'net.core.somaxconn', value: '1' }] },
        volumes: [
          { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
          { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'token' } }] } },
        ],
        initContainers: [
          { name: 'setup', image: 'busybox' },
          { name: 'proxy', image: 'proxy', restartPolicy: 'Always', livenessProbe: { tcpSocket: { port: 80 } } },
        ],
        containers: [
          {
            name: 'app',
            image: 'app:1',
            ports: [{ name: 'http', containerPort: 80 }],
            env: [
              { name: 'A', value: '1' },
              { name: 'A', value: '2' },
              { name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
              { name: 'L', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app.kubernetes.io/name']" } } },
            ],
            envFrom: [{ prefix: 'P_', configMapRef: { name: 'c' } }],
            volumeMounts: [{ name: 'token', mountPath: '/token', readOnly: true }],
            volumeDevices: [{ name: 'data', devicePath: '/dev/xvda' }],
            resources: { requests: { cpu: '1', 'example.com/gpu': '1' }, limits: { 'example.com/gpu': '1' } },
            lifecycle: { preStop: { sleep: { seconds: 30 } } },
            securityContext: { privileged: true, capabilities: { add: ['NET_ADMIN'] } },
          },
        ],
      }),
    ).toEqual([]);
  });
});

describe('containers', () => {
  it.each<[JsonObject, string | RegExp]>([
    [{ name: '' }, `${C}.name: Required value`],
    [{ name: 'A' }, /^spec\.containers\[0\]\.name: Invalid value: "A": a lowercase RFC 1123 label must consist/],
    [{ image: '' }, `${C}.image: Required value`],
    [{ image: ' a' }, `${C}.image: Invalid value: " a": must not have leading or trailing whitespace`],
    [{ restartPolicy: 'Always' }, `${C}.restartPolicy: Forbidden: may not be set for non-init containers`],
    [{ ports: [{ containerPort: 0 }] }, `${C}.ports[0].containerPort: Required value`],
    [
      { ports: [{ containerPort: 70_000 }] },
      `${C}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive`,
    ],
    [
      {
        ports: [
          { containerPort: 1, name: 'a' },
          { containerPort: 2, name: 'a' },
        ],
      },
      `${C}.ports[1].name: Duplicate value: "a"`,
    ],
    [
      {
        ports: [
          { containerPort: 1, hostPort: 9 },
          { containerPort: 2, hostPort: 9 },
        ],
      },
      `${C}.ports[1].hostPort: Duplicate value: "TCP//9"`,
    ],
    [{ env: [{ name: '' }] }, `${C}.env[0].name: Required value`],
    [
      { env: [{ name: 'a=b' }] },
      `${C}.env[0].name: Invalid value: "a=b": a valid environment variable name must consist only of printable ASCII characters other than '='`,
    ],
    [
      { env: [{ name: 'A', valueFrom: {} }] },
      `${C}.env[0].valueFrom: Invalid value: "": must specify one of: \`fieldRef\`, \`resourceFieldRef\`, \`configMapKeyRef\` or \`secretKeyRef\``,
    ],
    [
      { env: [{ name: 'A', value: 'x', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] },
      `${C}.env[0].valueFrom: Invalid value: "": may not be specified when \`value\` is not empty`,
    ],
    [
      { env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.restartPolicy' } } }] },
      `${C}.env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "spec.restartPolicy": supported values: "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"`,
    ],
    [
      { env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.containers' } } }] },
      `${C}.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.containers": error converting fieldPath: field label not supported: spec.containers`,
    ],
    [
      { env: [{ name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '2' } } }] },
      `${C}.env[0].valueFrom.resourceFieldRef.divisor: Invalid value: "limits.cpu": only divisor's values 1m and 1 are supported with the cpu resource`,
    ],
    [{ envFrom: [{}] }, `${C}.envFrom: Invalid value: "": must specify one of: \`configMapRef\` or \`secretRef\``],
    [{ volumeMounts: [{ name: 'x', mountPath: '/x' }] }, `${C}.volumeMounts[0].name: Not found: "x"`],
    [
      { resources: { requests: { cpu: '2' }, limits: { cpu: '1' } } },
      `${C}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`,
    ],
    [
      { resources: { limits: { memory: '-1' } } },
      `${C}.resources.limits[memory]: Invalid value: "-1": must be greater than or equal to 0`,
    ],
    [
      { resources: { limits: { gpu: '1' } } },
      `${C}.resources.limits[gpu]: Invalid value: "gpu": must be a standard resource type or fully qualified`,
    ],
    [
      { resources: { requests: { 'example.com/gpu': '1' } } },
      `${C}.resources.limits: Required value: Limit must be set for non overcommitable resources`,
    ],
    [
      { resources: { limits: { 'example.com/gpu': '500m' } } },
      `${C}.resources.limits[example.com/gpu]: Invalid value: "500m": must be an integer`,
    ],
    [
      { resources: { limits: { 'hugepages-2Mi': '2Mi' } } },
      `${C}.resources: Forbidden: HugePages require cpu or memory`,
    ],
    [
      { resources: { claims: [{ name: 'x' }] } },
      `${C}.resources.claims[0]: Not found: "x": must be one of the names in pod.spec.resourceClaims which is empty`,
    ],
    [{ livenessProbe: {} }, `${C}.livenessProbe: Required value: must specify a handler type`],
    [
      { livenessProbe: { tcpSocket: { port: 1 }, successThreshold: 2 } },
      `${C}.livenessProbe.successThreshold: Invalid value: 2: must be 1`,
    ],
    [
      { readinessProbe: { tcpSocket: { port: 0 } } },
      `${C}.readinessProbe.tcpSocket.port: Invalid value: 0: must be between 1 and 65535, inclusive`,
    ],
    [
      { readinessProbe: { exec: { command: ['a'] }, tcpSocket: { port: 1 } } },
      `${C}.readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type`,
    ],
    [
      { startupProbe: { exec: { command: ['a'] }, timeoutSeconds: -1 } },
      `${C}.startupProbe.timeoutSeconds: Invalid value: -1: must be greater than or equal to 0`,
    ],
    [
      { lifecycle: { preStop: { sleep: { seconds: 31 } } } },
      `${C}.lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)`,
    ],
    [
      { securityContext: { allowPrivilegeEscalation: false, privileged: true } },
      /: cannot set `allowPrivilegeEscalation` to false and `privileged` to true$/,
    ],
    [
      { securityContext: { seccompProfile: { type: 'Localhost' } } },
      `${C}.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost`,
    ],
    [
      { securityContext: { runAsUser: -1 } },
      `${C}.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive`,
    ],
  ])('refuses %j', (container, message) => {
    const errors = errorsOfContainer(container);
    if (typeof message === 'string') expect(errors).toContain(message);
    else expect(errors.join('\n')).toMatch(message);
  });

  it('must exist, with names of their own', () => {
    expect(errorsOf({ containers: [] })).toEqual(['spec.containers: Required value']);
    expect(
      errorsOf({
        containers: [
          { name: 'a', image: 'a' },
          { name: 'a', image: 'a' },
        ],
      }),
    ).toEqual(['spec.containers[1].name: Duplicate value: "a"']);
    expect(errorsOf({ initContainers: [{ name: 'app', image: 'a' }] })).toEqual([
      'spec.initContainers[0].name: Duplicate value: "app"',
    ]);
  });

  it('are more restricted as init containers', () => {
    expect(
      errorsOf({ initContainers: [{ name: 'i', image: 'a', readinessProbe: { tcpSocket: { port: 1 } } }] }),
    ).toEqual([
      'spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always',
    ]);
    expect(errorsOf({ initContainers: [{ name: 'i', image: 'a', restartPolicy: 'Never' }] })).toEqual([
      'spec.initContainers[0].restartPolicy: Unsupported value: "Never": supported values: "Always"',
    ]);
  });

  it('cannot be ephemeral on create, and have few fields then', () => {
    const ephemeralContainers = [
      { name: 'debug', image: 'a', targetContainerName: 'x', ports: [{ containerPort: 1 }] },
    ];
    expect(errorsOf({ ephemeralContainers })).toEqual([
      'spec.ephemeralContainers[0].targetContainerName: Not found: "x"',
      'spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container',
      'spec.ephemeralContainers: Forbidden: cannot be set on create',
    ]);
  });
});

describe('scheduling', () => {
  it.each<[JsonObject, string | RegExp]>([
    [
      { tolerations: [{ operator: 'Equal', value: 'x' }] },
      'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"',
    ],
    [
      { tolerations: [{ key: 'a', operator: 'Exists', tolerationSeconds: 1 }] },
      `spec.tolerations[0].effect: Invalid value: "": effect must be 'NoExecute' when \`tolerationSeconds\` is set`,
    ],
    [
      { tolerations: [{ key: 'a', effect: 'Never' }] },
      'spec.tolerations[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ],
    [
      { tolerations: [{ key: 'a', operator: 'In' }] },
      'spec.tolerations[0].operator: Unsupported value: "In": supported values: "Equal", "Exists"',
    ],
    [{ nodeSelector: { 'a b': 'x' } }, /^spec\.nodeSelector: Invalid value: "a b": name part must consist of/],
    [
      { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } },
      'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term',
    ],
    [
      {
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 0, preference: { matchExpressions: [{ key: 'a', operator: 'Gt', values: [] }] } },
            ],
          },
        },
      },
      /weight: Invalid value: 0: must be in the range 1-100\n.*values: Required value: must be specified single value when `operator` is 'Lt' or 'Gt'/,
    ],
    [
      { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: '' }] } } },
      /topologyKey: Required value: can not be empty/,
    ],
    [
      { topologySpreadConstraints: [{ maxSkew: 0, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule' }] },
      'spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero',
    ],
    [
      {
        topologySpreadConstraints: [
          { maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule' },
          { maxSkew: 2, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule' },
        ],
      },
      'spec.topologySpreadConstraints[1].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, DoNotSchedule}"',
    ],
    [{ schedulingGates: [{ name: 'a' }, { name: 'a' }] }, 'spec.schedulingGates[1]: Duplicate value: "a"'],
    [
      { schedulingGates: [{ name: 'a' }], nodeName: 'n' },
      'spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared',
    ],
  ])('refuses %j', (spec, message) => {
    const errors = errorsOf(spec);
    if (typeof message === 'string') expect(errors).toContain(message);
    else expect(errors.join('\n')).toMatch(message);
  });
});

describe('the rest of the spec', () => {
  it.each<[JsonObject, string | RegExp]>([
    [
      { activeDeadlineSeconds: 0 },
      'spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive',
    ],
    [{ hostname: 'a.b' }, 'spec.hostname: Invalid value: "a.b": must not contain dots'],
    [{ nodeName: 'A' }, /^spec\.nodeName: Invalid value: "A": a lowercase RFC 1123 subdomain/],
    [{ dnsPolicy: 'None' }, 'spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None'],
    [
      { dnsConfig: { nameservers: ['a'] } },
      'spec.dnsConfig.nameservers[0]: Invalid value: "a": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
    [
      { hostNetwork: true, containers: [{ name: 'a', image: 'a', ports: [{ containerPort: 1, hostPort: 2 }] }] },
      'spec.containers[0].ports[0].hostPort: Invalid value: 2: must match `containerPort` when `hostNetwork` is true',
    ],
    [{ hostUsers: false, hostPID: true }, 'spec.HostPID: Forbidden: when `hostUsers` is false'],
    [
      { securityContext: { sysctls: [{ name: 'A', value: '' }] } },
      /^spec\.securityContext\.sysctls\[0\]\.name: Invalid value: "A": must have at most 253 characters and match regex/,
    ],
    [
      { os: { name: 'windows' }, securityContext: { fsGroup: 1 } },
      'spec.securityContext.fsGroup: Forbidden: cannot be set for a windows pod',
    ],
    [
      {
        resources: { requests: { cpu: '1' } },
        containers: [{ name: 'a', image: 'a', resources: { requests: { cpu: '2' } } }],
      },
      'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2',
    ],
    [
      { resources: { limits: { 'ephemeral-storage': '1' } } },
      'spec.resources.limits[ephemeral-storage]: Unsupported value: "ephemeral-storage": supported values: "cpu", "hugepages-", "memory"',
    ],
    [
      { resourceClaims: [{ name: 'a' }] },
      'spec.resourceClaims[0]: Invalid value: {"name":"a"}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`',
    ],
  ])('refuses %j', (spec, message) => {
    const errors = errorsOf(spec);
    if (typeof message === 'string') expect(errors).toContain(message);
    else expect(errors.join('\n')).toMatch(message);
  });

  it('checks annotations that mean something', () => {
    expect(errorsOf({}, { 'kubernetes.io/config.mirror': 'x' })).toEqual([
      'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set spec.nodeName if mirror pod annotation is set',
    ]);
    expect(errorsOf({}, { 'controller.kubernetes.io/pod-deletion-cost': '1.5' })).toEqual([
      'metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "1.5": must be a 32bit integer',
    ]);
  });

  it('warns of names that make bad host names', () => {
    const warnings = (name: string): string[] =>
      podDefinition.strategy?.warnings?.(defaultedPod(podDefinition, {}, { name }), undefined) ?? [];
    expect(warnings('a')).toEqual([]);
    expect(warnings('a.b')).toEqual([
      "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
    ]);
  });
});

describe('templates', () => {
  it('are checked like pods, less strictly', () => {
    const spec = { containers: [{ name: 'a', image: ' a' }], hostNetwork: true };
    expect(lines(podTemplateErrors({ spec }, 'spec.template'))).toEqual([]);
    const bad = { metadata: { labels: { a: '!' } }, spec: { containers: [{ name: 'A', image: 'a' }] } };
    expect(lines(podTemplateErrors(bad, 'spec.template'))).toEqual([
      expect.stringMatching(/^spec\.template\.labels: Invalid value: "!"/),
      expect.stringMatching(/^spec\.template\.spec\.containers\[0\]\.name: Invalid value: "A"/),
    ]);
  });

  it('have no ephemeral containers', () => {
    const spec = { containers: [{ name: 'a', image: 'a' }], ephemeralContainers: [{ name: 'b', image: 'b' }] };
    expect(lines(podTemplateErrors({ spec }, 'template'))).toEqual([
      'template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template',
    ]);
  });
});

import { GUESTS_ONLY } from '../../api/kubevirt/node-labels.ts';
import { APP_LABEL, PART_OF_GODWIT, SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { CONTROLLER_ACCOUNT } from '../../control/installation/rights.ts';
import { SERVICE_ACCOUNT, SERVICE_NAME } from '../../extension/identity.ts';
import { SYNCHRONIZATION_ACCOUNT } from '../../sync/rights.ts';
import { SYNCHRONIZATION_PORT } from '../../sync/wire/address.ts';
import type { DeploymentSettings, OpenGroup, OpenSettings } from './settings.ts';

/** The components that run as ordinary pods, two of each, and what leads to them; pure. */

/** Where each serves health and metrics, without TLS. */
export const METRICS_PORT = 8080;
/** Where the extension's pods listen, and where its Service does. */
export const EXTENSION_PORT = 8443;
export const EXTENSION_SERVICE_PORT = 443;

/** Made here, since Kubernetes keeps its own most critical classes for itself in some clusters. As KubeVirt names it. */
const PRIORITY_CLASS = 'kubevirt-cluster-critical';

/** Nobody's number, and not that of guests either: what needs no rights has none. */
const USER = 64_108;

/** For how long a pod that ends serves on: API servers and Services hear a moment later that it does, and ask it until then. */
const LAME_DUCK_SECONDS = 5;

const METRICS_LABELS = { 'prometheus.kubevirt.io': 'true' };

interface Component {
  /** Of its Deployment and of what belongs to it, and the value of their label `kubevirt.io`; as KubeVirt's are called. */
  readonly name: string;
  readonly account: string;
  readonly command: readonly unknown[];
  readonly settings: OpenGroup<DeploymentSettings>;
  /** Where others reach it, besides its metrics. */
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  /** How one hears that it can be asked. */
  readonly readiness: object;
  /** What comes before its end, where others ask all replicas. */
  readonly lifecycle?: object;
}

/** All of them, with their services, budgets and network policies. */
export function deployments(settings: OpenSettings): KubeObject[] {
  const { synchronization } = settings;
  return [
    priorityClass(),
    service(SERVICE_NAME, SERVICE_NAME, 'ClusterIP', [
      { name: 'https', port: EXTENSION_SERVICE_PORT, targetPort: 'https' },
    ]),
    service('virt-synchronization', 'virt-synchronization-controller', synchronization.serviceType, [
      { name: 'synchronization', port: synchronization.servicePort, targetPort: 'synchronization' },
    ]),
    metricsService(),
    ...componentsOf(settings).flatMap((component) => [
      deployment(settings, component),
      disruptionBudget(component),
      networkPolicy(component),
    ]),
  ];
}

function componentsOf(settings: OpenSettings): Component[] {
  const metrics = ['--metrics', `0.0.0.0:${METRICS_PORT}`];
  const listen = ['--listen', `0.0.0.0:${EXTENSION_PORT}`];
  const level = ['--log-level', settings.logLevel];
  return [
    {
      name: 'virt-controller',
      account: CONTROLLER_ACCOUNT,
      command: ['godwit', 'controllers', '--launcher-image', settings.image, ...metrics, ...level],
      settings: settings.controllers,
      ports: [],
      readiness: { httpGet: { path: '/readyz', port: 'metrics' } },
    },
    {
      name: SERVICE_NAME,
      account: SERVICE_ACCOUNT,
      command: ['godwit', 'extension', ...listen, '--service-port', `${EXTENSION_SERVICE_PORT}`, ...metrics, ...level],
      settings: settings.extension,
      ports: [{ name: 'https', containerPort: EXTENSION_PORT }],
      readiness: { httpGet: { path: '/readyz', port: 'https', scheme: 'HTTPS' } },
      lifecycle: { preStop: { sleep: { seconds: LAME_DUCK_SECONDS } } },
    },
    {
      name: 'virt-synchronization-controller',
      account: SYNCHRONIZATION_ACCOUNT,
      command: ['godwit', 'sync', '--listen', `0.0.0.0:${SYNCHRONIZATION_PORT}`, ...metrics, ...level],
      settings: settings.synchronization,
      ports: [{ name: 'synchronization', containerPort: SYNCHRONIZATION_PORT }],
      readiness: { httpGet: { path: '/readyz', port: 'metrics' } },
    },
  ];
}

/** Labels of all that is Godwit's, and by which others find KubeVirt's components. */
export function labelsOf(component: string): Record<string, string> {
  return { ...PART_OF_GODWIT, [APP_LABEL]: component };
}

/** Metadata of an object of the system's namespace that belongs to a component. */
export function metadataOf(name: string, component = name): KubeObject['metadata'] {
  return { name, namespace: SYSTEM_NAMESPACE, labels: labelsOf(component) };
}

function deployment(settings: OpenSettings, component: Component): KubeObject {
  const { name, settings: own } = component;
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: metadataOf(name),
    spec: {
      replicas: own.replicas,
      selector: { matchLabels: { [APP_LABEL]: name } },
      template: {
        metadata: { labels: { ...labelsOf(name), ...METRICS_LABELS } },
        spec: podSpec(settings, component),
      },
    },
  };
}

function podSpec(settings: OpenSettings, component: Component): object {
  const { name, account } = component;
  const labelSelector = { matchLabels: { [APP_LABEL]: name } };
  return {
    serviceAccountName: account,
    priorityClassName: PRIORITY_CLASS,
    imagePullSecrets: settings.imagePullSecrets,
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    tolerations: settings.tolerations,
    affinity: {
      // The agents' own nodes run guests, and no containers.
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchExpressions: [{ key: GUESTS_ONLY, operator: 'DoesNotExist' }] }],
        },
      },
      // No second constraint below: the scheduler would pass over nodes without a zone.
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 100, podAffinityTerm: { topologyKey: 'topology.kubernetes.io/zone', labelSelector } },
        ],
      },
    },
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'kubernetes.io/hostname',
        whenUnsatisfiable: 'ScheduleAnyway',
        labelSelector,
        // Those of the version before go: while a Deployment rolls, they are no reason to be elsewhere.
        matchLabelKeys: ['pod-template-hash'],
      },
    ],
    securityContext: {
      runAsNonRoot: true,
      runAsUser: USER,
      runAsGroup: USER,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [container(settings, component)],
  };
}

function container(settings: OpenSettings, component: Component): object {
  const { name, command, settings: own, ports, readiness, lifecycle } = component;
  return {
    name,
    image: settings.image,
    imagePullPolicy: settings.imagePullPolicy,
    command,
    args: own.arguments,
    ports: [...ports, { name: 'metrics', containerPort: METRICS_PORT }],
    // Slow to give up: who restarts a component that is busy makes it busier.
    livenessProbe: {
      httpGet: { path: '/healthz', port: 'metrics' },
      initialDelaySeconds: 15,
      periodSeconds: 15,
      timeoutSeconds: 10,
      failureThreshold: 6,
    },
    readinessProbe: { ...readiness, periodSeconds: 5, timeoutSeconds: 5 },
    lifecycle,
    resources: own.resources,
    securityContext: {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
  };
}

function priorityClass(): KubeObject {
  return {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name: PRIORITY_CLASS },
    // The most that a class of users' own can have.
    value: 1_000_000_000,
    globalDefault: false,
    description: 'For what keeps virtual machines running.',
  };
}

function service(name: string, component: string, type: unknown, ports: readonly object[]): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadataOf(name, component),
    spec: { type, selector: { [APP_LABEL]: component }, ports },
  };
}

function metricsService(): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: 'kubevirt-prometheus-metrics',
      namespace: SYSTEM_NAMESPACE,
      labels: METRICS_LABELS,
    },
    // Whoever collects asks each pod.
    spec: {
      clusterIP: 'None',
      selector: METRICS_LABELS,
      ports: [{ name: 'metrics', port: METRICS_PORT, targetPort: 'metrics' }],
    },
  };
}

function disruptionBudget({ name }: Component): KubeObject {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: metadataOf(name),
    spec: {
      // Not a number that must stay: one replica alone could never be drained.
      maxUnavailable: 1,
      // Nor do those keep a node that do not serve: what never became ready would keep it for good.
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
      selector: { matchLabels: { [APP_LABEL]: name } },
    },
  };
}

/** Its own ports and nothing else. From whom is left open: API servers and other clusters have no labels. */
function networkPolicy({ name, ports }: Component): KubeObject {
  const open = [...ports.map(({ containerPort }) => containerPort), METRICS_PORT];
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadataOf(name),
    spec: {
      podSelector: { matchLabels: { [APP_LABEL]: name } },
      policyTypes: ['Ingress'],
      ingress: [{ ports: open.map((port) => ({ protocol: 'TCP', port })) }],
    },
  };
}

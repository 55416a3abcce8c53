import {
  AGENT_DIRECTORY,
  LAUNCHER_USER,
  LAUNCHERS_DIRECTORY,
  RUNS_DIRECTORY,
} from '../../api/kubevirt/launcher-container.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { GUESTS_ONLY } from '../../api/kubevirt/node-labels.ts';
import { roomAnnotations } from '../../api/kubevirt/pod-room.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { KubeObject, ObjectMeta } from '../../api/meta.ts';
import { derivedSuffix } from '../../machinery/derived-identity.ts';
import {
  APP_LABEL,
  CREATED_BY_LABEL,
  MACHINE_NAME_LABEL,
  OUTDATED_LAUNCHER_LABEL,
  SCHEDULABLE_LABEL,
  TEMPLATE_HASH_ANNOTATION,
  UNPAUSED_CONDITION,
} from '../../api/kubevirt/well-known.ts';
import { CLEANUP_SECONDS, guestGraceMs, holdReserveSeconds } from '../../migration/disruption/disposition.ts';
import { launcherResources } from './launcher-resources.ts';
import { podVolumes } from './launcher-volumes.ts';

/** The launcher pod of a guest: where QEMU runs, with what it asks of its node. */

export interface LauncherOptions {
  /** The launcher's image. */
  readonly image: string;
  readonly configuration: KubeVirtConfiguration;
  /** Whether a claim is a device and no filesystem. */
  readonly isBlock: (claimName: string) => boolean;
  /** Where kubelets run it, as a container. */
  readonly kubelets?: KubeletLaunchers | undefined;
}

/** How launcher pods are that kubelets run. */
export interface KubeletLaunchers {
  /** Secrets of the pods' own namespaces with which kubelets pull the image. */
  readonly imagePullSecrets: readonly string[];
}

/** The container that QEMU runs in. */
export const COMPUTE = 'compute';

const PREFIX = 'virt-launcher-';
const NAME_LENGTH_MAX = 253;
const LABEL_LENGTH_MAX = 63;

/**
 * The name of a guest's first launcher pod. It follows from the guest's UID, so that a guest has one such pod whoever
 * tries to create it, and how often.
 */
export function launcherName({ metadata }: VirtualMachineInstance): string {
  const { name = '', uid = '' } = metadata;
  const suffix = `-${derivedSuffix(uid, 'launcher')}`;
  return PREFIX + name.slice(0, NAME_LENGTH_MAX - PREFIX.length - suffix.length) + suffix;
}

const POD_UID = { name: 'POD_UID', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } };
/** QEMU finds its files by the names that the agent knows them by, also those that are mounted there later. */
const AGENT_MOUNT = { name: 'agent', mountPath: AGENT_DIRECTORY, mountPropagation: 'HostToContainer' };
const AGENT_VOLUME = { name: 'agent', hostPath: { path: AGENT_DIRECTORY, type: 'Directory' } };
/** What is started in a container. It has /dev/kvm and bridges by being privileged, and no rights over them but its user's. */
const CONTAINER = {
  command: [
    'godwit',
    'launcher',
    '--socket',
    `${AGENT_DIRECTORY}/${LAUNCHERS_DIRECTORY}/$(POD_UID).sock`,
    '--directory',
    `${AGENT_DIRECTORY}/${RUNS_DIRECTORY}/$(POD_UID)`,
    // Why a container has ended is asked of its log, also where nothing has failed.
    '--log-level',
    'info',
  ],
  securityContext: { privileged: true },
  terminationMessagePolicy: 'FallbackToLogsOnError',
};

/** Where agents run guests themselves there is no container, so that it may be as Pod Security wants it (`restricted`). */
const NO_CONTAINER = { securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } };
const SECCOMP = { seccompProfile: { type: 'RuntimeDefault' } };
/** Nodes that run nothing but guests may say so. */
const GUESTS_ONLY_TOLERATION = { key: GUESTS_ONLY, operator: 'Exists', effect: 'NoSchedule' };

/** The pod to be created for a guest. */
export function launcherPod(guest: VirtualMachineInstance, options: LauncherOptions): KubeObject {
  const { spec } = guest;
  const { image, configuration, isBlock, kubelets } = options;
  const isContainer = kubelets !== undefined;
  // Guests that are simply stopped are stopped in their own time. This is the longest that a pod can ever take.
  const graceSeconds = guestGraceMs(guest) / 1000 + CLEANUP_SECONDS + holdReserveSeconds(guest, configuration);
  const { volumes, volumeMounts, volumeDevices } = podVolumes(spec.volumes ?? [], isBlock);
  const account = spec.volumes?.find(({ serviceAccount }) => serviceAccount)?.serviceAccount?.serviceAccountName;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: podMetadata(guest),
    spec: {
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: graceSeconds,
      hostname: hostnameOf(guest),
      enableServiceLinks: false,
      automountServiceAccountToken: account !== undefined,
      ...(account === undefined ? {} : { serviceAccountName: account }),
      securityContext: {
        runAsUser: LAUNCHER_USER,
        runAsGroup: LAUNCHER_USER,
        fsGroup: LAUNCHER_USER,
        runAsNonRoot: true,
        ...(isContainer ? {} : SECCOMP),
      },
      ...(kubelets ? ofKubelets(kubelets) : {}),
      readinessGates: [{ conditionType: UNPAUSED_CONDITION }],
      ...scheduling(guest),
      ...present({ subdomain: spec.subdomain, dnsPolicy: spec.dnsPolicy, dnsConfig: spec.dnsConfig }),
      containers: [
        {
          name: COMPUTE,
          image,
          imagePullPolicy: 'IfNotPresent',
          env: [...environmentOf(guest, graceSeconds), ...(isContainer ? [POD_UID] : [])],
          resources: launcherResources(spec, configuration, isContainer),
          volumeMounts: [...volumeMounts, ...(isContainer ? [AGENT_MOUNT] : [])],
          ...(volumeDevices.length > 0 ? { volumeDevices } : {}),
          ...(isContainer ? CONTAINER : NO_CONTAINER),
        },
      ],
      volumes: [...volumes, ...(isContainer ? [AGENT_VOLUME] : [])],
    },
  };
}

function ofKubelets({ imagePullSecrets }: KubeletLaunchers): object {
  const secrets = imagePullSecrets.map((name) => ({ name }));
  return { hostNetwork: true, ...(secrets.length > 0 ? { imagePullSecrets: secrets } : {}) };
}

function podMetadata(guest: VirtualMachineInstance): ObjectMeta {
  const { name = '', namespace = '', uid = '', annotations = {} } = guest.metadata;
  // Of the guest in the pod that it leaves.
  const { [OUTDATED_LAUNCHER_LABEL]: _outdated, ...labels } = guest.metadata.labels ?? {};
  const {
    'kubectl.kubernetes.io/last-applied-configuration': _,
    [TEMPLATE_HASH_ANNOTATION]: _hash,
    ...kept
  } = annotations;
  return {
    name: launcherName(guest),
    namespace,
    labels: {
      ...labels,
      [APP_LABEL]: 'virt-launcher',
      [CREATED_BY_LABEL]: uid,
      ...(name.length > LABEL_LENGTH_MAX ? {} : { [MACHINE_NAME_LABEL]: name }),
    },
    annotations: {
      ...kept,
      'kubevirt.io/domain': name,
      'kubevirt.io/migrationTransportUnix': 'true',
      'kubectl.kubernetes.io/default-container': COMPUTE,
      // The descheduler asks, and whoever answers moves the guest.
      'descheduler.alpha.kubernetes.io/request-evict-only': '',
      ...roomAnnotations(guest),
    },
    ownerReferences: [
      {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstance',
        name,
        uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  };
}

function scheduling({ spec }: VirtualMachineInstance): object {
  const { affinity, tolerations, topologySpreadConstraints, priorityClassName, schedulerName } = spec;
  return {
    nodeSelector: {
      [SCHEDULABLE_LABEL]: 'true',
      'kubernetes.io/arch': spec.architecture || 'amd64',
      ...spec.nodeSelector,
    },
    tolerations: [...(tolerations ?? []), GUESTS_ONLY_TOLERATION],
    ...present({ affinity, topologySpreadConstraints, priorityClassName, schedulerName }),
  };
}

/** The launcher knows whom it is for, and how long it may hold a guest that nobody tells it what to do with. */
function environmentOf({ metadata }: VirtualMachineInstance, graceSeconds: number): object[] {
  return [
    { name: 'VMI_NAME', value: metadata.name ?? '' },
    { name: 'VMI_UID', value: metadata.uid ?? '' },
    { name: 'GRACE_PERIOD_SECONDS', value: String(graceSeconds) },
    { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
  ];
}

/** Hostnames are single labels. */
function hostnameOf({ metadata, spec }: VirtualMachineInstance): string {
  const [first = ''] = (spec.hostname || metadata.name || '').split('.');
  return first.slice(0, LABEL_LENGTH_MAX).replace(/-+$/, '');
}

function present(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== ''));
}

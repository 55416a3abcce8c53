import { bool, embedded, enumeration, int32, list, listMap, message, set, str, type Field } from '../../../schema.ts';
import { envFromSource, envVar } from './environment.ts';
import { lifecycle, probe } from './probes.ts';
import { resourceRequirements } from './resources.ts';
import { securityContext } from './security.ts';
import { CORE } from './package.ts';

/** Schemas of containers. */

const containerPort = message(
  `${CORE}.ContainerPort`,
  'A port that a container listens on.',
  {
    name: [1, str(), 'Name of the port, unique in the pod.'],
    hostPort: [2, int32(), 'Port of the host that leads to it.'],
    containerPort: [3, int32(), "The port's number, 1 to 65535."],
    protocol: [4, enumeration(['SCTP', 'TCP', 'UDP'], { default: 'TCP' }), 'TCP, UDP or SCTP; TCP by default.'],
    hostIP: [5, str(), 'Host address to bind the host port to.'],
  },
  { required: ['containerPort'] },
);

const volumeMount = message(
  `${CORE}.VolumeMount`,
  'Where a volume appears in a container.',
  {
    name: [1, str(), 'Name of the volume.'],
    readOnly: [2, bool(), 'Whether the mount is read-only.'],
    mountPath: [3, str(), 'Path in the container.'],
    subPath: [4, str(), 'Path within the volume to mount; its root by default.'],
    mountPropagation: [
      5,
      enumeration(['Bidirectional', 'HostToContainer', 'None'], { pointer: true }),
      'Whether mounts travel between host and container: None, HostToContainer or Bidirectional.',
    ],
    subPathExpr: [6, str(), 'Like subPath, with $(VAR) replaced from the environment.'],
    recursiveReadOnly: [
      7,
      enumeration(['Disabled', 'Enabled', 'IfPossible'], { pointer: true }),
      'Whether a read-only mount is so all the way down: Disabled, IfPossible or Enabled.',
    ],
  },
  { required: ['name', 'mountPath'] },
);

const volumeDevice = message(
  `${CORE}.VolumeDevice`,
  'A raw block device in a container.',
  {
    name: [1, str(), 'Name of a volume that is a claim.'],
    devicePath: [2, str(), 'Path of the device in the container.'],
  },
  { required: ['name', 'devicePath'] },
);

const containerResizePolicy = message(
  `${CORE}.ContainerResizePolicy`,
  'What resizing a resource does to the container.',
  {
    resourceName: [1, str(), 'The resource: cpu or memory.'],
    restartPolicy: [2, enumeration(['NotRequired', 'RestartContainer']), 'NotRequired or RestartContainer.'],
  },
  { required: ['resourceName', 'restartPolicy'] },
);

const containerRestartRuleOnExitCodes = message(
  `${CORE}.ContainerRestartRuleOnExitCodes`,
  'Matches exit codes.',
  {
    operator: [1, enumeration(['In', 'NotIn']), 'In or NotIn.'],
    values: [2, set(int32(), { 'x-kubernetes-patch-strategy': 'replace' }), 'The exit codes.'],
  },
  { required: ['operator'] },
);

const containerRestartRule = message(
  `${CORE}.ContainerRestartRule`,
  'What to do when a container exits in a certain way.',
  {
    action: [1, enumeration(['Restart']), 'What to do; Restart.'],
    exitCodes: [2, containerRestartRuleOnExitCodes, 'The exit codes that this rule is about.'],
  },
  { required: ['action'] },
);

const containerFields: { readonly [field: string]: Field } = {
  name: [1, str(), 'Name, a DNS label unique in the pod; cannot be changed.'],
  image: [2, str(), 'Image to run.'],
  command: [3, list(str()), "Entrypoint, run without a shell; the image's by default."],
  args: [4, list(str()), "Arguments of the entrypoint; the image's by default."],
  workingDir: [5, str(), "Working directory; the image's by default."],
  ports: [
    6,
    listMap(['containerPort', 'protocol'], containerPort),
    'Ports that the container listens on; for information, and for names.',
  ],
  env: [7, listMap(['name'], envVar), 'Environment variables.'],
  resources: [8, resourceRequirements, 'Compute resources that the container needs.'],
  volumeMounts: [9, listMap(['mountPath'], volumeMount), "Volumes that appear in the container's filesystem."],
  livenessProbe: [10, probe, 'When this fails, the container is restarted.'],
  readinessProbe: [11, probe, 'While this fails, the pod gets no traffic from services.'],
  lifecycle: [12, lifecycle, "Hooks into the container's life."],
  terminationMessagePath: [13, str(), 'File whose content becomes the termination message.'],
  imagePullPolicy: [
    14,
    enumeration(['Always', 'IfNotPresent', 'Never']),
    'Always, Never or IfNotPresent; Always for the tag latest, otherwise IfNotPresent.',
  ],
  securityContext: [15, securityContext, "Security settings; they win over the pod's."],
  stdin: [16, bool(), 'Whether standard input is kept open.'],
  stdinOnce: [17, bool(), 'Whether standard input is closed after the first client detaches.'],
  tty: [18, bool(), 'Whether a terminal is allocated; needs stdin.'],
  envFrom: [19, list(envFromSource), 'Sets of environment variables.'],
  terminationMessagePolicy: [
    20,
    enumeration(['File', 'FallbackToLogsOnError']),
    'File, or FallbackToLogsOnError to use the end of the log.',
  ],
  volumeDevices: [21, listMap(['devicePath'], volumeDevice), 'Raw block devices.'],
  startupProbe: [22, probe, 'Until this succeeds, no other probe runs.'],
  resizePolicy: [23, list(containerResizePolicy), 'What resizing each resource does to the container.'],
  restartPolicy: [24, str({ pointer: true }), 'Of an init container: Always makes it a sidecar.'],
  restartPolicyRules: [25, list(containerRestartRule), 'Rules that come before the restart policy.'],
};

export const container = message(`${CORE}.Container`, 'An application container of a pod.', containerFields, {
  required: ['name'],
});

export const ephemeralContainer = message(
  `${CORE}.EphemeralContainer`,
  'A container that is added to a running pod to look into it.',
  {
    ...embedded(1, containerFields),
    targetContainerName: [2, str(), 'Container whose namespaces this one joins.'],
  },
  { required: ['name'] },
);

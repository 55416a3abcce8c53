import { bool, int32, int64, list, listMap, map, message, quantity, str, time } from '../../../schema.ts';
import { resourceRequirements } from './resources.ts';
import { CORE } from './package.ts';

/** Schemas of the observed state of containers. */

const containerStateWaiting = message(`${CORE}.ContainerStateWaiting`, 'A container that does not run yet.', {
  reason: [1, str(), 'One word for why.'],
  message: [2, str(), 'Why, in words.'],
});

const containerStateRunning = message(`${CORE}.ContainerStateRunning`, 'A container that runs.', {
  startedAt: [1, time(), 'When it was started.'],
});

const containerStateTerminated = message(
  `${CORE}.ContainerStateTerminated`,
  'A container that has ended.',
  {
    exitCode: [1, int32({ default: 0 }), 'Its exit code.'],
    signal: [2, int32(), 'The signal that ended it.'],
    reason: [3, str(), 'One word for why it ended.'],
    message: [4, str(), 'Why it ended, in words.'],
    startedAt: [5, time(), 'When it was started.'],
    finishedAt: [6, time(), 'When it ended.'],
    containerID: [7, str(), "The runtime's ID of it."],
  },
  { required: ['exitCode'] },
);

const containerState = message(
  `${CORE}.ContainerState`,
  "A container's state; at most one field is set, none means waiting.",
  {
    waiting: [1, containerStateWaiting, 'The container does not run yet.'],
    running: [2, containerStateRunning, 'The container runs.'],
    terminated: [3, containerStateTerminated, 'The container has ended.'],
  },
);

const volumeMountStatus = message(
  `${CORE}.VolumeMountStatus`,
  'A mount as it is.',
  {
    name: [1, str({ default: '' }), 'Name of the volume.'],
    mountPath: [2, str({ default: '' }), 'Path in the container.'],
    readOnly: [3, bool(), 'Whether the mount is read-only.'],
    recursiveReadOnly: [4, str({ pointer: true }), 'Disabled, Enabled or IfPossible.'],
  },
  { required: ['name', 'mountPath'] },
);

const linuxContainerUser = message(
  `${CORE}.LinuxContainerUser`,
  "The user of a container's first process.",
  {
    uid: [1, int64({ default: 0 }), 'User ID.'],
    gid: [2, int64({ default: 0 }), 'Primary group ID.'],
    supplementalGroups: [3, list(int64()), 'More group IDs.'],
  },
  { required: ['uid', 'gid'] },
);

const containerUser = message(`${CORE}.ContainerUser`, "The user of a container's first process.", {
  linux: [1, linuxContainerUser, 'The user, on Linux.'],
});

const resourceHealth = message(
  `${CORE}.ResourceHealth`,
  'The health of one device.',
  {
    resourceID: [1, str({ default: '' }), 'ID of the device.'],
    health: [2, str(), 'Healthy, Unhealthy or Unknown.'],
  },
  { required: ['resourceID'] },
);

const resourceStatus = message(
  `${CORE}.ResourceStatus`,
  "The health of a resource's devices.",
  {
    name: [1, str({ default: '' }), 'Name of the resource.'],
    resources: [
      2,
      listMap(['resourceID'], resourceHealth, { 'x-kubernetes-patch-strategy': 'replace' }),
      'The devices.',
    ],
  },
  { required: ['name'] },
);

export const containerStatus = message(
  `${CORE}.ContainerStatus`,
  'The observed state of a container.',
  {
    name: [1, str({ default: '' }), 'Name of the container.'],
    state: [2, containerState, 'Its state now.'],
    lastState: [3, containerState, 'Its state before the last restart.'],
    ready: [4, bool({ default: false }), 'Whether it passes its readiness probe.'],
    restartCount: [5, int32({ default: 0 }), 'How often it was restarted.'],
    image: [6, str({ default: '' }), 'The image that runs.'],
    imageID: [7, str({ default: '' }), 'ID of the image.'],
    containerID: [8, str(), "The runtime's ID of the container."],
    started: [9, bool({ pointer: true }), 'Whether it has passed its startup probe.'],
    allocatedResources: [10, map(quantity()), 'Resources set aside for it.'],
    resources: [11, resourceRequirements, 'Resources in effect.'],
    volumeMounts: [12, listMap(['mountPath'], volumeMountStatus), 'Mounts as they are.'],
    user: [13, containerUser, 'The user of its first process.'],
    allocatedResourcesStatus: [14, listMap(['name'], resourceStatus), 'Health of its devices.'],
    stopSignal: [15, str({ pointer: true }), 'The signal that stops it.'],
  },
  { required: ['name', 'ready', 'restartCount', 'image', 'imageID'] },
);

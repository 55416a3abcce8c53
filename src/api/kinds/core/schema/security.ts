import { bool, enumeration, int64, list, message, str } from '../../../schema.ts';
import { CORE } from './package.ts';

/** Schemas of security contexts. */

const capabilities = message(`${CORE}.Capabilities`, 'POSIX capabilities to add and to take away.', {
  add: [1, list(str()), 'Capabilities to add.'],
  drop: [2, list(str()), 'Capabilities to take away.'],
});

const seLinuxOptions = message(`${CORE}.SELinuxOptions`, 'The SELinux label of a container.', {
  user: [1, str(), 'User part of the label.'],
  role: [2, str(), 'Role part of the label.'],
  type: [3, str(), 'Type part of the label.'],
  level: [4, str(), 'Level part of the label.'],
});

const seccompProfile = message(
  `${CORE}.SeccompProfile`,
  'The seccomp profile of a container.',
  {
    type: [1, enumeration(['Localhost', 'RuntimeDefault', 'Unconfined']), 'RuntimeDefault, Unconfined or Localhost.'],
    localhostProfile: [2, str({ pointer: true }), 'Path of the profile on the node, for Localhost.'],
  },
  { required: ['type'] },
);

const appArmorProfile = message(
  `${CORE}.AppArmorProfile`,
  'The AppArmor profile of a container.',
  {
    type: [1, enumeration(['Localhost', 'RuntimeDefault', 'Unconfined']), 'RuntimeDefault, Unconfined or Localhost.'],
    localhostProfile: [2, str({ pointer: true }), 'Name of the profile loaded on the node, for Localhost.'],
  },
  { required: ['type'] },
);

const windowsSecurityContextOptions = message(
  `${CORE}.WindowsSecurityContextOptions`,
  'Settings that only Windows has.',
  {
    gmsaCredentialSpecName: [1, str({ pointer: true }), 'Name of the GMSA credential spec.'],
    gmsaCredentialSpec: [2, str({ pointer: true }), 'The GMSA credential spec itself.'],
    runAsUserName: [3, str({ pointer: true }), 'User to run the entrypoint as.'],
    hostProcess: [4, bool({ pointer: true }), 'Whether the container runs as a process of the host.'],
  },
);

export const securityContext = message(
  `${CORE}.SecurityContext`,
  "Security settings of a container; they win over the pod's.",
  {
    capabilities: [1, capabilities, 'Capabilities to add and to take away.'],
    privileged: [2, bool({ pointer: true }), 'Whether processes are as good as root on the host.'],
    seLinuxOptions: [3, seLinuxOptions, 'SELinux label of the container.'],
    runAsUser: [4, int64({ pointer: true }), 'UID to run the entrypoint as.'],
    runAsNonRoot: [5, bool({ pointer: true }), 'Whether running as UID 0 is refused.'],
    readOnlyRootFilesystem: [6, bool({ pointer: true }), 'Whether the root filesystem is read-only.'],
    allowPrivilegeEscalation: [
      7,
      bool({ pointer: true }),
      'Whether a process may gain more privileges than its parent.',
    ],
    runAsGroup: [8, int64({ pointer: true }), 'GID to run the entrypoint as.'],
    procMount: [
      9,
      enumeration(['Default', 'Unmasked'], { pointer: true }),
      'How /proc is mounted: Default or Unmasked.',
    ],
    windowsOptions: [10, windowsSecurityContextOptions, 'Settings for Windows.'],
    seccompProfile: [11, seccompProfile, 'Seccomp profile of the container.'],
    appArmorProfile: [12, appArmorProfile, 'AppArmor profile of the container.'],
  },
);

const sysctl = message(
  `${CORE}.Sysctl`,
  'A kernel parameter to set in the pod.',
  {
    name: [1, str(), 'Name of the parameter.'],
    value: [2, str(), 'Value of the parameter.'],
  },
  { required: ['name', 'value'] },
);

export const podSecurityContext = message(
  `${CORE}.PodSecurityContext`,
  'Security settings of a pod and defaults for its containers.',
  {
    seLinuxOptions: [1, seLinuxOptions, 'SELinux label of all containers.'],
    runAsUser: [2, int64({ pointer: true }), 'UID to run the entrypoints as.'],
    runAsNonRoot: [3, bool({ pointer: true }), 'Whether running as UID 0 is refused.'],
    supplementalGroups: [4, list(int64()), 'Groups of the first process, besides its primary one.'],
    fsGroup: [5, int64({ pointer: true }), 'Group that owns the volumes that support ownership.'],
    runAsGroup: [6, int64({ pointer: true }), 'GID to run the entrypoints as.'],
    sysctls: [7, list(sysctl), 'Kernel parameters to set.'],
    windowsOptions: [8, windowsSecurityContextOptions, 'Settings for Windows.'],
    fsGroupChangePolicy: [
      9,
      enumeration(['Always', 'OnRootMismatch'], { pointer: true }),
      'When ownership of volumes is changed: OnRootMismatch or Always.',
    ],
    seccompProfile: [10, seccompProfile, 'Seccomp profile of all containers.'],
    appArmorProfile: [11, appArmorProfile, 'AppArmor profile of all containers.'],
    supplementalGroupsPolicy: [
      12,
      enumeration(['Merge', 'Strict'], { pointer: true }),
      'How supplementary groups are made up: Merge or Strict.',
    ],
    seLinuxChangePolicy: [
      13,
      enumeration(['MountOption', 'Recursive'], { pointer: true }),
      'How volumes are relabelled: MountOption or Recursive.',
    ],
  },
);

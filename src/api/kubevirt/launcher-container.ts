/** What controllers and agents agree on where launcher pods are containers of kubelets. */

/** The user that QEMU runs as in launcher pods, which is the same in KubeVirt's images. */
export const LAUNCHER_USER = 107;
/** The directory of the agent on each machine: launchers see it by the same name. */
export const AGENT_DIRECTORY = '/var/lib/godwit';
/** The directory in it that launchers listen in. */
export const LAUNCHERS_DIRECTORY = 'launchers';
/** The directory in it in which each pod's machine has one of its own. */
export const RUNS_DIRECTORY = 'runs';

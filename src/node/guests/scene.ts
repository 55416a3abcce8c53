import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Hold } from '../../migration/disruption/disposition.ts';
import type { View } from '../../migration/right-to-run/view.ts';
import type { LauncherPod } from './launcher-pod.ts';
import type { SeenMachine } from './machines.ts';

/** A launcher pod with what belongs to it, as it was when somebody looked. */
export interface Scene {
  readonly podUID: string;
  /** UID of the virtual machine, under which the journal knows the pod. */
  readonly vm: string;
  /** Undefined where it is gone. */
  readonly pod: LauncherPod | undefined;
  /** Undefined where it is gone. */
  readonly guest: VirtualMachineInstance | undefined;
  /** For how long the pod, which is being deleted, holds its guest; undefined where it does not. */
  readonly hold?: Hold | undefined;
  /** Since when its kubelet ends the pod, which nobody has deleted; undefined where it does not. */
  readonly endingMs?: number | undefined;
}

/** Where the protocol has led to: nothing more is to be done, for now. */
export interface Outcome extends Scene {
  readonly view: View;
  readonly seen: SeenMachine;
}

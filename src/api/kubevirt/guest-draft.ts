import type { InstancetypeSpec } from './instancetype.ts';
import type { PreferenceSpec } from './preference.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';

/** A guest before it is made: its spec, and the annotations it will have. */
export interface GuestDraft {
  readonly spec: VirtualMachineInstanceSpec;
  readonly annotations: Readonly<Record<string, string>>;
}

/** What says how large it is, and what fills in the rest. */
export interface Sizing {
  readonly instancetype?: InstancetypeSpec;
  readonly preference?: PreferenceSpec;
}

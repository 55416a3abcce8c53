import type { FieldError } from '../../api/field-error.ts';
import { withInstancetypeAndPreference } from '../../api/kubevirt/apply-instancetype.ts';
import { withVirtualMachineInstanceDefaults } from '../../api/kubevirt/defaults.ts';
import type { Sizing } from '../../api/kubevirt/guest-draft.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { preferenceErrors } from '../../api/kubevirt/preference-requirements.ts';
import { isPausedStartAsked } from '../../api/kubevirt/state-change-request.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';
import { derivedMac, derivedUuid } from '../../machinery/derived-identity.ts';
import {
  GENERATION_ANNOTATION,
  GUEST_FINALIZER,
  MACHINE_FINALIZER,
  MACHINE_NAME_LABEL,
  RECEIVER_ANNOTATION,
  TEMPLATE_HASH_ANNOTATION,
} from '../../api/kubevirt/well-known.ts';
import { withRoomToGrow } from './room-to-grow.ts';
import { templateHash } from './template-hash.ts';

/** Makes the guest of a machine: what its template says, in the size of its instance type, with an identity that stays. */

export interface GuestOptions {
  readonly sizing: Sizing;
  readonly configuration: KubeVirtConfiguration;
  /** Whether it comes from elsewhere. */
  readonly isReceiver: boolean;
}

export type MadeGuest =
  | { readonly guest: VirtualMachineInstance; readonly errors: readonly [] }
  | { readonly guest?: undefined; readonly errors: readonly FieldError[] };

/** Labels' values are no longer than this. */
const LABEL_LENGTH_MAX = 63;

/** The guest to be created, or why there can be none. */
export function makeGuest(machine: VirtualMachine, options: GuestOptions): MadeGuest {
  const { metadata, spec } = machine;
  const { uid = '', name = '', namespace = '' } = metadata;
  const { template } = spec;
  const { sizing, configuration } = options;
  const draft = {
    spec: template.spec ?? { domain: { devices: {} } },
    annotations: { ...template.metadata?.annotations },
  };
  const errors = preferenceErrors(sizing, draft.spec);
  if (errors.length > 0) return { errors };
  const sized = withInstancetypeAndPreference(draft, sizing, 'spec.template.spec');
  if (!sized.draft) return { errors: sized.conflicts };
  const newUuid = (): string => derivedUuid(uid, 'firmware');
  const complete = withVirtualMachineInstanceDefaults(sized.draft.spec, { configuration, newUuid });
  const guest: VirtualMachineInstance = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name,
      namespace,
      labels: {
        ...template.metadata?.labels,
        ...(name.length > LABEL_LENGTH_MAX ? {} : { [MACHINE_NAME_LABEL]: name }),
      },
      annotations: {
        ...sized.draft.annotations,
        ...sizingAnnotations(machine),
        [GENERATION_ANNOTATION]: String(metadata.generation ?? 0),
        [TEMPLATE_HASH_ANNOTATION]: templateHash(machine),
        ...(options.isReceiver ? { [RECEIVER_ANNOTATION]: 'true' } : {}),
      },
      ownerReferences: [
        { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name, uid, controller: true, blockOwnerDeletion: true },
      ],
      // The second is for those who run it; that it is there from the start saves a write.
      finalizers: [MACHINE_FINALIZER, GUEST_FINALIZER],
    },
    spec: {
      ...withAddresses(withRoomToGrow(complete, configuration), uid),
      ...(isPausedStartAsked(machine) ? { startStrategy: 'Paused' as const } : {}),
    },
  };
  return { guest, errors: [] };
}

/** Which instance type and which preference a guest was made with, as KubeVirt's users look it up. */
function sizingAnnotations({ spec }: VirtualMachine): Record<string, string> {
  const annotations: Record<string, string> = {};
  for (const [matcher, what] of [
    [spec.instancetype, 'instancetype'],
    [spec.preference, 'preference'],
  ] as const) {
    if (!matcher?.name) continue;
    const isOfNamespace = matcher.kind?.toLowerCase() === `virtualmachine${what}`;
    annotations[`kubevirt.io/${isOfNamespace ? '' : 'cluster-'}${what}-name`] = matcher.name;
  }
  return annotations;
}

/** Guests remember networks by hardware address: each interface has the same one whenever the guest starts. */
function withAddresses(spec: VirtualMachineInstanceSpec, uid: string): VirtualMachineInstanceSpec {
  const { devices } = spec.domain;
  if (!devices.interfaces) return spec;
  const interfaces = devices.interfaces.map((each) => ({
    ...each,
    macAddress: each.macAddress || derivedMac(uid, `interface ${each.name}`),
  }));
  return { ...spec, domain: { ...spec.domain, devices: { ...devices, interfaces } } };
}

import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';
import { IDENTITY_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { isFinal, isWaiting, restoredStrategy } from './decide.ts';

/**
 * A guest that came from elsewhere is known by what it was known by there: its firmware, its hardware addresses. The
 * machine that has received it says so from then on, or else the guest would be another one after its next start. It is
 * told so once, and that it was is noted with it: what somebody changes there afterwards is theirs, and holds from the next
 * start, like all that is changed of a machine that runs.
 */

/** The spec of the machine's template with the identity of the guest that has come; undefined where it was given it. */
export function receivedIdentity(
  machine: VirtualMachine,
  guest: VirtualMachineInstance | undefined,
): VirtualMachineInstanceSpec | undefined {
  const { spec } = machine.spec.template;
  if (!guest || !spec || !hasReceived(machine, guest)) return undefined;
  if (machine.metadata.annotations?.[IDENTITY_ANNOTATION] === guest.metadata.uid) return undefined;
  const next = withIdentityOf(spec, guest.spec);
  // Whose run strategy is another one at once is never looked at again, and need not note anything.
  return restoredStrategy(machine) !== undefined && deepEqual(next, spec) ? undefined : next;
}

/** Whether it is a guest that was waited for, and has come, and nobody has acted on that yet. */
function hasReceived(machine: VirtualMachine, guest: VirtualMachineInstance): boolean {
  if (effectiveRunStrategy(machine.spec) !== 'WaitAsReceiver' || isWaiting(guest) || isFinal(guest)) return false;
  const { metadata, status } = guest;
  return metadata.deletionTimestamp === undefined && status?.rightToRun !== undefined && !isAway(status.rightToRun);
}

function withIdentityOf(
  spec: VirtualMachineInstanceSpec,
  { domain, networks }: VirtualMachineInstanceSpec,
): VirtualMachineInstanceSpec {
  const { uuid, serial } = domain.firmware ?? {};
  const firmware = { ...spec.domain.firmware, ...(uuid ? { uuid } : {}), ...(serial ? { serial } : {}) };
  const { interfaces: own } = spec.domain.devices;
  const { interfaces: come } = domain.devices;
  // Who has named none has the usual one, which has to be named to have an address.
  const isUsual = (own ?? []).length === 0 && (spec.networks ?? []).length === 0;
  const interfaces = isUsual
    ? come
    : own?.map((each) => {
        const macAddress = come?.find(({ name }) => name === each.name)?.macAddress;
        return macAddress ? { ...each, macAddress } : each;
      });
  return {
    ...spec,
    domain: {
      ...spec.domain,
      ...(Object.keys(firmware).length > 0 ? { firmware } : {}),
      devices: { ...spec.domain.devices, ...(interfaces ? { interfaces } : {}) },
    },
    ...(isUsual && networks ? { networks } : {}),
  };
}

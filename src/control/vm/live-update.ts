import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { wantedSockets } from '../../api/kubevirt/pod-room.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { TEMPLATE_HASH_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { isFinal } from './decide.ts';
import { makeGuest } from './make-guest.ts';
import { isLiveUpdated } from './room-to-grow.ts';
import { fullTemplateHash, templateHash } from './template-hash.ts';

/** What becomes of a change of a machine whose guest is there already. */
export type LiveUpdate =
  | { readonly action: 'none' }
  /** It takes effect with the guest's next start. */
  | { readonly action: 'restart'; readonly message: string }
  /** The guest is told to have so many sockets. */
  | { readonly action: 'apply'; readonly sockets: number };

const NONE: LiveUpdate = { action: 'none' };

/** The same words as KubeVirt's, where it has some. */
const NOT_LIVE = 'a non-live-updatable field was changed in the template spec';
const TOO_MANY = "CPU sockets updated in template spec to a value higher than what's available";
const FEWER = 'Reduction of CPU socket count requires a restart';

const restart = (message: string): LiveUpdate => ({ action: 'restart', message });

/** What is to be done about the differences between a machine's template and its guest. */
export function liveUpdate(
  machine: VirtualMachine,
  guest: VirtualMachineInstance | undefined,
  configuration: KubeVirtConfiguration,
): LiveUpdate {
  const made = guest?.metadata.annotations?.[TEMPLATE_HASH_ANNOTATION];
  if (!guest || isFinal(guest) || made === undefined || made === fullTemplateHash(machine)) return NONE;
  if (made !== templateHash(machine)) return restart(NOT_LIVE);
  const sockets = templateSockets(machine, configuration);
  if (sockets === undefined || sockets === wantedSockets(guest)) return NONE;
  if (!isLiveUpdated(configuration)) return restart(NOT_LIVE);
  const { phase, currentCPUTopology } = guest.status ?? {};
  const { sockets: current = 0 } = currentCPUTopology ?? {};
  // It starts with what it was made from; once it runs it is told of the rest.
  if (phase !== 'Running' || current === 0) return NONE;
  if (sockets > (guest.spec.domain.cpu?.maxSockets ?? 0)) return restart(TOO_MANY);
  return sockets < current ? restart(FEWER) : { action: 'apply', sockets };
}

/** How many sockets a guest that is made now would have; undefined where more than the template says that. */
function templateSockets(machine: VirtualMachine, configuration: KubeVirtConfiguration): number | undefined {
  if (machine.spec.instancetype || machine.spec.preference) return undefined;
  const { guest } = makeGuest(machine, { sizing: {}, configuration, isReceiver: false });
  return guest && wantedSockets(guest);
}

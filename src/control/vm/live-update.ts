import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { wantedSockets } from '../../api/kubevirt/pod-room.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Volume } from '../../api/kubevirt/volumes.ts';
import { TEMPLATE_HASH_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { type ClaimChange, claimChanges, claimsOfVolumes } from '../claim-changes.ts';
import { isFinal } from './decide.ts';
import { makeGuest } from './make-guest.ts';
import { isLiveUpdated } from './room-to-grow.ts';
import { fullTemplateHash, templateHash } from './template-hash.ts';

/** What becomes of a change of a machine whose guest is there already. */
export type LiveUpdate =
  | { readonly action: 'none' }
  /** It takes effect with the guest's next start. */
  | { readonly action: 'restart'; readonly message: string }
  /** The guest is told to have so many sockets, or these volumes. */
  | { readonly action: 'apply'; readonly sockets?: number; readonly volumes?: readonly Volume[] };

const NONE: LiveUpdate = { action: 'none' };

/** The same words as KubeVirt's, where it has some. */
const NOT_LIVE = 'a non-live-updatable field was changed in the template spec';
const TOO_MANY = "CPU sockets updated in template spec to a value higher than what's available";
const UNDER_WAY = 'The volume can only be reverted to the previous version during the update';
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
  const [volumes, sockets] = [
    volumesUpdate(machine, guest, configuration),
    socketsUpdate(machine, guest, configuration),
  ];
  if (volumes.action === 'restart' || sockets.action === 'none') return volumes;
  if (sockets.action === 'restart' || volumes.action === 'none') return sockets;
  return { ...volumes, ...sockets };
}

function socketsUpdate(
  machine: VirtualMachine,
  guest: VirtualMachineInstance,
  configuration: KubeVirtConfiguration,
): LiveUpdate {
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

/** Other claims of volumes. A change that is under way can be taken back, and nothing else be begun before it is over. */
function volumesUpdate(
  { spec }: VirtualMachine,
  guest: VirtualMachineInstance,
  configuration: KubeVirtConfiguration,
): LiveUpdate {
  const changes = claimChanges(claimsOfVolumes(guest.spec.volumes), claimsOfVolumes(spec.template.spec?.volumes));
  if (changes.length === 0) return NONE;
  if (spec.updateVolumesStrategy !== 'Migration' || !isLiveUpdated(configuration)) return restart(NOT_LIVE);
  if (guest.status?.phase !== 'Running') return NONE;
  const underWay = guest.status.migratedVolumes ?? [];
  const isReverted = ({ volumeName, destination }: ClaimChange): boolean =>
    underWay.some((each) => each.volumeName === volumeName && each.sourcePVCInfo?.claimName === destination);
  if (underWay.length > 0 && !changes.every(isReverted)) return restart(UNDER_WAY);
  const claims = new Map(changes.map(({ volumeName, destination }) => [volumeName, destination]));
  return { action: 'apply', volumes: (guest.spec.volumes ?? []).map((each) => onClaim(each, claims.get(each.name))) };
}

function onClaim(volume: Volume, claimName: string | undefined): Volume {
  if (claimName === undefined) return volume;
  const { persistentVolumeClaim, dataVolume } = volume;
  if (persistentVolumeClaim) return { ...volume, persistentVolumeClaim: { ...persistentVolumeClaim, claimName } };
  return dataVolume ? { ...volume, dataVolume: { ...dataVolume, name: claimName } } : volume;
}

/** How many sockets a guest that is made now would have; undefined where more than the template says that. */
function templateSockets(machine: VirtualMachine, configuration: KubeVirtConfiguration): number | undefined {
  if (machine.spec.instancetype || machine.spec.preference) return undefined;
  const { guest } = makeGuest(machine, { sizing: {}, configuration, isReceiver: false });
  return guest && wantedSockets(guest);
}

import type { Domain } from '../../api/kubevirt/domain.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { bytesOf, memoryRoomOf, pluggedUnits } from '../../api/kubevirt/memory-room.ts';
import { wantedMemoryBytes, wantedSockets } from '../../api/kubevirt/pod-room.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Volume } from '../../api/kubevirt/volumes.ts';
import { TEMPLATE_HASH_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { type ClaimChange, claimChanges, claimsOfVolumes } from '../claim-changes.ts';
import type { QuantityValue } from '../../api/typed-schema.ts';
import { isFinal } from './decide.ts';
import { makeGuest } from './make-guest.ts';
import { isLiveUpdated } from './room-to-grow.ts';
import { fullTemplateHash, templateHash } from './template-hash.ts';

/** What becomes of a change of a machine whose guest is there already. */
export type LiveUpdate =
  | { readonly action: 'none' }
  /** It takes effect with the guest's next start. */
  | { readonly action: 'restart'; readonly message: string }
  /** The guest is told to have so many sockets, so much memory, or these volumes. */
  | Application;

interface Application {
  readonly action: 'apply';
  readonly sockets?: number;
  /** With what its pod asks for then. */
  readonly memory?: { readonly guest: QuantityValue; readonly resources: NonNullable<Domain['resources']> };
  readonly volumes?: readonly Volume[];
}

const NONE: LiveUpdate = { action: 'none' };

/** The same words as KubeVirt's, where it has some. */
const NOT_LIVE = 'a non-live-updatable field was changed in the template spec';
const TOO_MANY = "CPU sockets updated in template spec to a value higher than what's available";
const UNDER_WAY = 'The volume can only be reverted to the previous version during the update';
const TOO_MUCH = 'Memory updated in template spec to a value higher than what is available';
const LESS = 'Reduction of memory requires a restart';
const PIECES = 'Memory can be added without a restart in multiples of';
const FEWER = 'Reduction of CPU socket count requires a restart';

const MEBIBYTE = 2 ** 20;

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
  const all = [volumesUpdate, memoryUpdate, socketsUpdate].map((find) => find(machine, guest, configuration));
  const restarting = all.find(({ action }) => action === 'restart');
  if (restarting) return restarting;
  return Object.assign({}, NONE, ...all.filter(({ action }) => action === 'apply')) as LiveUpdate;
}

function socketsUpdate(
  machine: VirtualMachine,
  guest: VirtualMachineInstance,
  configuration: KubeVirtConfiguration,
): LiveUpdate {
  const sockets = templateDomain(machine, configuration)?.cpu?.sockets;
  if (!sockets || sockets === wantedSockets(guest)) return NONE;
  if (!isLiveUpdated(configuration)) return restart(NOT_LIVE);
  const { phase, currentCPUTopology } = guest.status ?? {};
  const { sockets: current = 0 } = currentCPUTopology ?? {};
  // It starts with what it was made from; once it runs it is told of the rest.
  if (phase !== 'Running' || current === 0) return NONE;
  if (sockets > (guest.spec.domain.cpu?.maxSockets ?? 0)) return restart(TOO_MANY);
  return sockets < current ? restart(FEWER) : { action: 'apply', sockets };
}

/** Memory comes in pieces, and none of it can be taken back once the guest has it. */
function memoryUpdate(
  machine: VirtualMachine,
  guest: VirtualMachineInstance,
  configuration: KubeVirtConfiguration,
): LiveUpdate {
  const { memory, resources = {} } = templateDomain(machine, configuration) ?? {};
  const bytes = bytesOf(memory?.guest);
  if (memory?.guest === undefined || bytes === undefined || bytes === wantedMemoryBytes(guest)) return NONE;
  if (!isLiveUpdated(configuration)) return restart(NOT_LIVE);
  const [room, current] = [memoryRoomOf(guest), bytesOf(guest.status?.memory?.guestCurrent)];
  if (!room) return restart(NOT_LIVE);
  if (guest.status?.phase !== 'Running' || current === undefined) return NONE;
  const units = pluggedUnits(guest, room, bytes);
  if (bytes < current) return restart(LESS);
  if (units > room.slots) return restart(TOO_MUCH);
  if (!Number.isInteger(units)) return restart(`${PIECES} ${room.unitBytes / MEBIBYTE}Mi`);
  return { action: 'apply', memory: { guest: memory.guest, resources } };
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

/** What was found last of each machine, which stays so while both it and the configuration are the same. */
const found = new WeakMap<VirtualMachine['spec'], { readonly by: KubeVirtConfiguration; readonly domain?: Domain }>();

/** The machine of a guest that is made now; undefined where more than the template says how large it is. */
function templateDomain(machine: VirtualMachine, configuration: KubeVirtConfiguration): Domain | undefined {
  if (machine.spec.instancetype || machine.spec.preference) return undefined;
  const known = found.get(machine.spec);
  if (known?.by === configuration) return known.domain;
  const { guest } = makeGuest(machine, { sizing: {}, configuration, isReceiver: false });
  const domain = guest?.spec.domain;
  found.set(machine.spec, { by: configuration, ...(domain ? { domain } : {}) });
  return domain;
}

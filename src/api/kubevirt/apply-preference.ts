import type { JsonObject } from '../meta.ts';
import type { Disk } from './disks.ts';
import type { Devices, Domain } from './domain.ts';
import type { GuestDraft } from './guest-draft.ts';
import type { NetworkInterface } from './networks.ts';
import type { PreferenceSpec } from './preference.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';

/** Fills in what a guest's template leaves open. What the template says, it keeps, but for what the comments name. */

type DevicePreferences = NonNullable<PreferenceSpec['devices']>;

/** The guest with what the preference says of what was open. */
export function withPreference(draft: GuestDraft, preference: PreferenceSpec): GuestDraft {
  const { spec } = draft;
  const subdomain = spec.subdomain || preference.preferredSubdomain;
  const gracePeriod = spec.terminationGracePeriodSeconds ?? preference.preferredTerminationGracePeriodSeconds;
  return {
    annotations: { ...preference.annotations, ...draft.annotations },
    spec: {
      ...spec,
      ...(subdomain ? { subdomain } : {}),
      ...(gracePeriod === undefined ? {} : { terminationGracePeriodSeconds: gracePeriod }),
      domain: {
        ...spec.domain,
        ...preferredCpu(spec.domain, preference),
        devices: preference.devices ? preferredDevices(spec, preference.devices) : spec.domain.devices,
        ...preferredFeatures(spec.domain, preference),
        ...preferredFirmware(spec.domain, preference),
        ...preferredMachine(spec.domain, preference),
        ...preferredClock(spec.domain, preference),
      },
    },
  };
}

function preferredCpu({ cpu }: Domain, preference: PreferenceSpec): Pick<Domain, 'cpu'> {
  const preferred = preference.cpu?.preferredCPUFeatures ?? [];
  if (preferred.length === 0) return {};
  const own = cpu?.features ?? [];
  const names = new Set(own.map(({ name }) => name));
  return { cpu: { ...cpu, features: [...own, ...preferred.filter(({ name }) => !names.has(name))] } };
}

/** Switches of devices, and what they are called among the preferences. */
const SWITCHES = [
  ['autoattachGraphicsDevice', 'preferredAutoattachGraphicsDevice'],
  ['autoattachInputDevice', 'preferredAutoattachInputDevice'],
  ['autoattachMemBalloon', 'preferredAutoattachMemBalloon'],
  ['autoattachPodInterface', 'preferredAutoattachPodInterface'],
  ['autoattachSerialConsole', 'preferredAutoattachSerialConsole'],
  ['blockMultiQueue', 'preferredBlockMultiQueue'],
  ['networkInterfaceMultiqueue', 'preferredNetworkInterfaceMultiQueue'],
  ['useVirtioTransitional', 'preferredUseVirtioTransitional'],
] as const satisfies readonly (readonly [keyof Devices, keyof DevicePreferences])[];

function preferredDevices(spec: VirtualMachineInstanceSpec, preferred: DevicePreferences): Devices {
  const { devices } = spec.domain;
  const { disks, interfaces, inputs, sound, panicDevices, rng, tpm } = devices;
  const made: Devices = { ...devices };
  for (const [field, preference] of SWITCHES) {
    const value = made[field] ?? preferred[preference];
    if (value !== undefined) made[field] = value;
  }
  // KubeVirt cannot tell an absent value from false here, and lets the preference win; so do we.
  if (preferred.preferredDisableHotplug !== undefined) made.disableHotplug = preferred.preferredDisableHotplug;
  if (preferred.preferredRng && !rng) made.rng = preferred.preferredRng;
  if (preferred.preferredTPM && !tpm) made.tpm = preferred.preferredTPM;
  if (sound) made.sound = filled(sound, 'model', preferred.preferredSoundModel);
  if (disks) made.disks = disks.map((disk) => preferredDisk(disk, preferred));
  if (interfaces) made.interfaces = interfaces.map((each) => preferredInterface(each, spec, preferred));
  if (inputs)
    made.inputs = inputs.map((input) => ({
      ...input,
      ...text('bus', input.bus, preferred.preferredInputBus),
      ...text('type', input.type, preferred.preferredInputType),
    }));
  if (panicDevices)
    made.panicDevices = panicDevices.map((device) => filled(device, 'model', preferred.preferredPanicDeviceModel));
  return made;
}

/** A field's own text, else the preferred one, else no field. */
function text<K extends string>(
  field: K,
  own: string | undefined,
  preferred: string | undefined,
): { [F in K]?: string } {
  const value = own || preferred;
  return (value ? { [field]: value } : {}) as { [F in K]?: string };
}

/** An object that we do not look into, with a preferred text where it has none. */
function filled(object: JsonObject, field: string, preferred: string | undefined): JsonObject {
  return preferred && !object[field] ? { ...object, [field]: preferred } : object;
}

function preferredDisk(disk: Disk, preferred: DevicePreferences): Disk {
  if (disk.cdrom)
    return { ...disk, cdrom: { ...disk.cdrom, ...text('bus', disk.cdrom.bus, preferred.preferredCdromBus) } };
  if (disk.lun) return { ...disk, lun: { ...disk.lun, ...text('bus', disk.lun.bus, preferred.preferredLunBus) } };
  const target = { ...disk.disk, ...text('bus', disk.disk?.bus, preferred.preferredDiskBus) };
  const blockSize = disk.blockSize ?? preferred.preferredDiskBlockSize;
  const hasThread =
    disk.dedicatedIOThread ?? (target.bus === 'virtio' ? preferred.preferredDiskDedicatedIoThread : undefined);
  return {
    ...disk,
    disk: target,
    ...text('cache', disk.cache, preferred.preferredDiskCache),
    ...text('io', disk.io, preferred.preferredDiskIO),
    ...(blockSize ? { blockSize } : {}),
    ...(hasThread === undefined ? {} : { dedicatedIOThread: hasThread }),
  };
}

const BINDINGS = ['masquerade', 'bridge', 'passt', 'passtBinding', 'sriov', 'macvtap', 'slirp', 'binding'] as const;

function preferredInterface(
  own: NetworkInterface,
  spec: VirtualMachineInstanceSpec,
  preferred: DevicePreferences,
): NetworkInterface {
  const isBound = BINDINGS.some((binding) => own[binding] !== undefined);
  const isOnPodNetwork = (spec.networks ?? []).some(({ name, pod }) => name === own.name && pod !== undefined);
  const masquerade = preferred.preferredInterfaceMasquerade;
  return {
    ...own,
    ...text('model', own.model, preferred.preferredInterfaceModel),
    ...(masquerade && !isBound && isOnPodNetwork ? { masquerade } : {}),
  };
}

function preferredFeatures({ features = {} }: Domain, preference: PreferenceSpec): Pick<Domain, 'features'> {
  if (!preference.features) return {};
  const { preferredAcpi, preferredApic, preferredHyperv, preferredKvm, preferredPvspinlock, preferredSmm } =
    preference.features;
  const hyperv = { ...preferredHyperv, ...(features['hyperv'] as JsonObject | undefined) };
  return {
    features: {
      ...(preferredApic ? { apic: preferredApic } : {}),
      ...(preferredKvm ? { kvm: preferredKvm } : {}),
      ...(preferredPvspinlock ? { pvspinlock: preferredPvspinlock } : {}),
      ...(preferredSmm ? { smm: preferredSmm } : {}),
      ...features,
      ...(preferredHyperv ? { hyperv } : {}),
      // As with disableHotplug, the preference wins.
      ...(preferredAcpi ? { acpi: preferredAcpi } : {}),
    },
  };
}

type Bootloader = NonNullable<NonNullable<Domain['firmware']>['bootloader']>;

function preferredFirmware({ firmware }: Domain, preference: PreferenceSpec): Pick<Domain, 'firmware'> {
  if (!preference.firmware) return {};
  const bootloader = preferredBootloader(firmware?.bootloader ?? {}, preference.firmware);
  return { firmware: { ...firmware, bootloader } };
}

function preferredBootloader(own: Bootloader, preferred: NonNullable<PreferenceSpec['firmware']>): Bootloader {
  const isOpen = own.bios === undefined && own.efi === undefined;
  if (own.bios ?? (isOpen && preferred.preferredUseBios)) {
    const useSerial = own.bios?.useSerial ?? preferred.preferredUseBiosSerial;
    return { ...own, bios: { ...own.bios, ...(useSerial === undefined ? {} : { useSerial }) } };
  }
  if (isOpen && preferred.preferredEfi) return { efi: preferred.preferredEfi };
  if (own.efi ?? (isOpen && preferred.preferredUseEfi)) {
    const secureBoot = own.efi?.secureBoot ?? preferred.preferredUseSecureBoot;
    return { ...own, efi: { ...own.efi, ...(secureBoot === undefined ? {} : { secureBoot }) } };
  }
  return own;
}

function preferredMachine({ machine }: Domain, preference: PreferenceSpec): Pick<Domain, 'machine'> {
  const type = machine?.type || preference.machine?.preferredMachineType;
  return type ? { machine: { ...machine, type } } : {};
}

function preferredClock({ clock = {} }: Domain, preference: PreferenceSpec): Pick<Domain, 'clock'> {
  if (!preference.clock) return {};
  const { preferredClockOffset, preferredTimer } = preference.clock;
  const hasOffset = clock['utc'] !== undefined || clock['timezone'] !== undefined;
  return {
    clock: {
      ...(hasOffset ? {} : preferredClockOffset),
      ...(preferredTimer ? { timer: preferredTimer } : {}),
      ...clock,
    },
  };
}

import { child, type FieldError, invalid, notSupported, required } from '../field-error.ts';
import { isCpuModelName } from './cpu-model.ts';
import type { Domain } from './domain.ts';
import { MACHINE_TYPES, whereMachineTypeIsKnown } from './machine-type.ts';

/** What the schema cannot say of a guest's machine, processor and firmware. */

const UUID = /^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/;
const FEATURE_POLICIES = ['force', 'require', 'optional', 'disable', 'forbid'];

/** What is wrong with a guest's machine, processor and firmware. `path` is that of the domain. */
export function machineErrors({ machine, cpu, firmware }: Domain, path: string): FieldError[] {
  return [
    ...machineTypeErrors(machine, child(path, 'machine.type')),
    ...cpuErrors(cpu, child(path, 'cpu')),
    ...firmwareErrors(firmware, child(path, 'firmware')),
  ];
}

function machineTypeErrors(machine: Domain['machine'], path: string): FieldError[] {
  if (!machine?.type || whereMachineTypeIsKnown(machine.type) !== 'nowhere') return [];
  return [notSupported(path, machine.type, MACHINE_TYPES)];
}

function cpuErrors(cpu: Domain['cpu'], path: string): FieldError[] {
  const { model, features = [], sockets = 1, maxSockets } = cpu ?? {};
  return [
    ...(!model || isCpuModelName(model)
      ? []
      : [invalid(child(path, 'model'), model, 'must be host-model, host-passthrough, or a model such as Haswell')]),
    ...features.flatMap(({ policy }, index) =>
      !policy || FEATURE_POLICIES.includes(policy)
        ? []
        : [notSupported(`${child(path, 'features')}[${index}].policy`, policy, FEATURE_POLICIES)],
    ),
    ...(maxSockets && sockets > maxSockets
      ? [invalid(child(path, 'sockets'), sockets, `must not be more than maxSockets, ${maxSockets}`)]
      : []),
  ];
}

function firmwareErrors(firmware: Domain['firmware'], path: string): FieldError[] {
  const { bootloader, kernelBoot, uuid, serial } = firmware ?? {};
  return [
    ...(uuid && !UUID.test(uuid) ? [invalid(child(path, 'uuid'), uuid, 'must be a UUID')] : []),
    ...nulErrors(serial, child(path, 'serial')),
    ...(bootloader?.bios && bootloader.efi
      ? [invalid(child(path, 'bootloader'), ['bios', 'efi'], 'must be one of bios and efi')]
      : []),
    ...kernelErrors(kernelBoot, child(path, 'kernelBoot')),
  ];
}

function kernelErrors(kernelBoot: NonNullable<Domain['firmware']>['kernelBoot'], path: string): FieldError[] {
  const { container, kernelArgs } = kernelBoot ?? {};
  const containerPath = child(path, 'container');
  return [
    ...(kernelArgs && !container ? [required(containerPath, 'arguments are for a kernel')] : []),
    ...(container && !container.kernelPath && !container.initrdPath
      ? [required(child(containerPath, 'kernelPath'), 'or initrdPath')]
      : []),
    ...nulErrors(kernelArgs, child(path, 'kernelArgs')),
    ...nulErrors(container?.kernelPath, child(containerPath, 'kernelPath')),
    ...nulErrors(container?.initrdPath, child(containerPath, 'initrdPath')),
  ];
}

/** Where a text of C ends, an argument of a program or the path of a file would end, too. */
export function nulErrors(text: string | undefined, path: string): FieldError[] {
  return text?.includes('\0') ? [invalid(path, text, 'must not contain the character NUL')] : [];
}

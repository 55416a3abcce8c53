import { type FieldError, invalid } from '../field-error.ts';
import { compareQuantities, parseQuantity } from '../quantity.ts';
import type { QuantityValue } from '../typed-schema.ts';
import { unreachable } from '../unreachable.ts';
import type { Sizing } from './guest-draft.ts';
import type { PreferenceSpec } from './preference.ts';
import { layoutPreference, type ProcessorLayout, spreadOf } from './processor-layout.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';

/** What a preference cannot do without. It is asked of the instance type, or of the template where there is none. */

const INSTANCETYPE = 'spec.instancetype';
const DOMAIN = 'spec.template.spec.domain';

/** Where a machine is too small for its preference, or cannot be laid out as that asks. */
export function preferenceErrors(sizing: Sizing, spec: VirtualMachineInstanceSpec): FieldError[] {
  const { preference } = sizing;
  if (!preference) return [];
  return [
    ...cpuErrors(sizing, spec, preference),
    ...memoryErrors(sizing, spec, preference),
    ...spreadErrors(sizing, preference),
  ];
}

function cpuErrors(sizing: Sizing, spec: VirtualMachineInstanceSpec, preference: PreferenceSpec): FieldError[] {
  const needed = preference.requirements?.cpu?.guest;
  if (needed === undefined) return [];
  const detail = `the preference requires ${needed} vCPU`;
  if (sizing.instancetype) {
    const { guest } = sizing.instancetype.cpu;
    return guest < needed ? [invalid(INSTANCETYPE, guest, `${detail} of the instance type`)] : [];
  }
  const { cpu } = spec.domain;
  if (!cpu) return [invalid(`${DOMAIN}.cpu`, null, detail)];
  const fields = countedFields(preference);
  const provided = fields.reduce((product, field) => product * (cpu[field] ?? 0), 1);
  if (provided >= needed) return [];
  return fields.map((field) => invalid(`${DOMAIN}.cpu.${field}`, provided, `${detail} as ${fields.join(', ')}`));
}

/** The fields whose product is the number of processors that counts. */
function countedFields(preference: PreferenceSpec): readonly (keyof ProcessorLayout)[] {
  const layout = layoutPreference(preference);
  switch (layout) {
    case 'sockets':
    case 'cores':
    case 'threads':
      return [layout];
    case 'any':
      return ['cores', 'sockets', 'threads'];
    case 'spread':
      return spreadFields(preference);
    default:
      return unreachable(layout);
  }
}

function spreadFields(preference: PreferenceSpec): readonly (keyof ProcessorLayout)[] {
  const { across } = spreadOf(preference);
  switch (across) {
    case 'SocketsCores':
      return ['sockets', 'cores'];
    case 'CoresThreads':
      return ['cores', 'threads'];
    case 'SocketsCoresThreads':
      return ['sockets', 'cores', 'threads'];
    default:
      return unreachable(across);
  }
}

function memoryErrors(sizing: Sizing, spec: VirtualMachineInstanceSpec, preference: PreferenceSpec): FieldError[] {
  const needed = preference.requirements?.memory?.guest;
  const provided: QuantityValue = sizing.instancetype?.memory.guest ?? spec.domain.memory?.guest ?? 0;
  const [least, actual] = [parseQuantity(needed), parseQuantity(provided)];
  if (!least || !actual || compareQuantities(actual, least) >= 0) return [];
  const field = sizing.instancetype ? INSTANCETYPE : `${DOMAIN}.memory`;
  return [invalid(field, provided, `the preference requires ${needed} of memory`)];
}

/** A spread that does not come out even would lose processors. */
function spreadErrors({ instancetype }: Sizing, preference: PreferenceSpec): FieldError[] {
  if (!instancetype || layoutPreference(preference) !== 'spread') return [];
  const { guest } = instancetype.cpu;
  const { across, ratio } = spreadOf(preference);
  const divisor = across === 'SocketsCoresThreads' ? ratio * 2 : ratio;
  if (guest === 1 || guest % divisor === 0) return [];
  return [invalid(INSTANCETYPE, guest, `the preference spreads vCPU across ${across}, ${divisor} at a time`)];
}

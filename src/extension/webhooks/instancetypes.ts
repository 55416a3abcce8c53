import { type FieldError, invalid } from '../../api/field-error.ts';
import type { Instancetype, InstancetypeSpec } from '../../api/kubevirt/instancetype.ts';
import type { Preference } from '../../api/kubevirt/preference.ts';
import { compareQuantities, parseQuantity } from '../../api/quantity.ts';
import { ALLOWED, verdictOf, type Webhook } from './review.ts';

/** Instance types and preferences, beyond what their schemas say. */

/** Refuses sizes that no guest can have. */
export function validateInstancetype(): Webhook {
  return ({ object }) => {
    if (!object) return ALLOWED;
    const { spec } = object as Instancetype;
    return verdictOf([...cpuErrors(spec), ...memoryErrors(spec)]);
  };
}

function cpuErrors({ cpu }: InstancetypeSpec): FieldError[] {
  if (cpu.guest < 1) return [invalid('spec.cpu.guest', cpu.guest, 'must be at least 1')];
  return cpu.maxSockets !== undefined && cpu.maxSockets < cpu.guest
    ? [invalid('spec.cpu.maxSockets', cpu.maxSockets, `must not be less than guest, ${cpu.guest}`)]
    : [];
}

function memoryErrors({ memory }: InstancetypeSpec): FieldError[] {
  const errors: FieldError[] = [];
  const guest = parseQuantity(memory.guest);
  const most = parseQuantity(memory.maxGuest);
  if (guest && guest.amount <= 0n) errors.push(invalid('spec.memory.guest', memory.guest, 'must be positive'));
  if (guest && most && compareQuantities(most, guest) < 0)
    errors.push(invalid('spec.memory.maxGuest', memory.maxGuest, `must not be less than guest, ${memory.guest}`));
  if (memory.overcommitPercent && memory.hugepages)
    errors.push(
      invalid(
        'spec.memory.overcommitPercent',
        memory.overcommitPercent,
        'spec.memory.overcommitPercent and spec.memory.hugepages should not be requested together.',
      ),
    );
  return errors;
}

/** Refuses preferences whose mixture of processors cannot be made. */
export function validatePreference(): Webhook {
  return ({ object }) => {
    if (!object) return ALLOWED;
    const { cpu } = (object as Preference).spec ?? {};
    const ratio = cpu?.spreadOptions?.ratio;
    return verdictOf(
      ratio !== undefined && ratio < 1 ? [invalid('spec.cpu.spreadOptions.ratio', ratio, 'must be at least 1')] : [],
    );
  };
}

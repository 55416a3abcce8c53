import { entry, type FieldError, forbidden } from '../../api/field-error.ts';
import { withVirtualMachineInstanceDefaults } from '../../api/kubevirt/defaults.ts';
import { virtualMachineInstanceWarnings } from '../../api/kubevirt/kept-fields.ts';
import { virtualMachineInstanceErrors } from '../../api/kubevirt/validation.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { GUEST_FINALIZER } from '../../api/kubevirt/well-known.ts';
import type { JsonObject } from '../../api/meta.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { isOwnComponent } from '../identity.ts';
import type { WebhookContext } from './context.ts';
import { changedReservedLabels, reservedLabels } from './reserved-labels.ts';
import { ALLOWED, invalidVerdict, verdictOf, type Webhook } from './review.ts';
import { isWellFormed } from './well-formed.ts';

/** Guests: complete from their first moment, and from then on as they are. */

/** Completes a guest that is to be made, so that whoever runs it need not guess. */
export function mutateVirtualMachineInstance(context: WebhookContext): Webhook {
  return ({ operation, object }) => {
    if (operation !== 'CREATE' || !object || !isWellFormed('virtualmachineinstances', object)) return ALLOWED;
    const guest = object as VirtualMachineInstance;
    const newUuid = (): string => context.random.uuid();
    const spec = withVirtualMachineInstanceDefaults(guest.spec, { configuration: context.configuration(), newUuid });
    const { finalizers = [] } = guest.metadata;
    const patch: JsonObject[] = [];
    if (!deepEqual(spec, guest.spec)) patch.push({ op: 'replace', path: '/spec', value: spec as never });
    // A guest that could vanish while it runs would be nobody's.
    if (!finalizers.includes(GUEST_FINALIZER))
      patch.push({ op: 'add', path: '/metadata/finalizers', value: [...finalizers, GUEST_FINALIZER] });
    return { allowed: true, patch };
  };
}

/** Refuses guests that could not run. */
export function validateNewVirtualMachineInstance(): Webhook {
  return ({ object, userInfo }) => {
    if (!object) return ALLOWED;
    const guest = object as VirtualMachineInstance;
    const errors = virtualMachineInstanceErrors(guest.spec);
    if (!isOwnComponent(userInfo.username)) errors.push(...newLabelErrors(guest));
    return verdictOf(errors, virtualMachineInstanceWarnings(guest.spec));
  };
}

function newLabelErrors({ metadata }: VirtualMachineInstance): FieldError[] {
  return reservedLabels(metadata.labels).map((label) =>
    forbidden(
      entry('metadata.labels', label),
      'creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited',
    ),
  );
}

/** A guest's spec is what runs: users change the machine that it is of, and only components what is known to follow. */
export function validateChangedVirtualMachineInstance(): Webhook {
  return ({ object, oldObject, userInfo }) => {
    if (!object || !oldObject || isOwnComponent(userInfo.username)) return ALLOWED;
    const [guest, old] = [object as VirtualMachineInstance, oldObject as VirtualMachineInstance];
    if (!deepEqual(guest.spec, old.spec)) return invalidVerdict([restricted('', 'update of VMI object is restricted')]);
    const labels = changedReservedLabels(old.metadata.labels, guest.metadata.labels);
    const detail = 'modification of the following reserved kubevirt.io/ labels on a VMI object is prohibited';
    return verdictOf(labels.map((label) => restricted(entry('metadata.labels', label), detail)));
  };
}

/** In KubeVirt's words, which scripts look for. */
function restricted(field: string, message: string): FieldError {
  return { type: 'FieldValueNotSupported', field, message };
}

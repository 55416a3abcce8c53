import { withInstancetypeAndPreference } from '../../api/kubevirt/apply-instancetype.ts';
import { withVirtualMachineDefaults } from '../../api/kubevirt/defaults.ts';
import type { Sizing } from '../../api/kubevirt/guest-draft.ts';
import { virtualMachineWarnings } from '../../api/kubevirt/kept-fields.ts';
import { preferenceErrors } from '../../api/kubevirt/preference-requirements.ts';
import { virtualMachineErrors } from '../../api/kubevirt/validation.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import { child, entry, type FieldError, forbidden } from '../../api/field-error.ts';
import { MACHINE_NAME_LABEL } from '../../api/kubevirt/well-known.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { configuredErrors } from './configured.ts';
import type { WebhookContext } from './context.ts';
import { reservedLabels } from './reserved-labels.ts';
import { ALLOWED, type AdmissionRequest, verdictOf, type Webhook } from './review.ts';
import { sizingOf } from './sizing.ts';
import { isWellFormed } from './well-formed.ts';

/** Machines: what their authors left open is filled in, and what cannot be is refused. */

/** Fills in what stays with the machine for as long as it is there. */
export function mutateVirtualMachine(context: WebhookContext): Webhook {
  return async (request, signal) => {
    const machine = machineOf(request.object);
    if (!machine || machine.metadata.deletionTimestamp !== undefined) return ALLOWED;
    const { preference } = await sizingOf(context.client, machine, signal);
    const old = machineOf(request.oldObject)?.spec.template.spec;
    const newUuid = (): string => old?.domain.firmware?.uuid || context.random.uuid();
    // Whoever replaces a machine by what they once wrote does not mean to exchange its hardware.
    const machineType = old?.domain.machine?.type;
    const kept = machineType
      ? { ...preference, machine: { ...preference?.machine, preferredMachineType: machineType } }
      : preference;
    const configuration = context.configuration();
    const spec = withVirtualMachineDefaults(machine.spec, { configuration, newUuid }, kept);
    if (deepEqual(spec, machine.spec)) return ALLOWED;
    return { allowed: true, patch: [{ op: 'replace', path: '/spec', value: spec as never }] };
  };
}

/** Refuses machines that could never run, or say two things at once. */
export function validateVirtualMachine(context: WebhookContext): Webhook {
  return async (request, signal) => {
    const machine = request.object as VirtualMachine | null | undefined;
    // What is going needs to please nobody.
    if (!machine || machine.metadata.deletionTimestamp !== undefined) return ALLOWED;
    const { spec } = machine;
    const old = machineOf(request.oldObject);
    // Metadata that is not ours, such as a finalizer, must be writable whatever we think of the rest by now.
    if (old && deepEqual(old.spec, spec)) return ALLOWED;
    const errors = [
      ...(await configuredErrors(context, signal, (configuration) => virtualMachineErrors(spec, configuration))),
      ...templateLabelErrors(machine),
      ...sizingErrors(machine, await sizingOf(context.client, machine, signal)),
    ];
    return verdictOf(errors, virtualMachineWarnings(spec));
  };
}

/** What the template, the instance type and the preference cannot be together. */
function sizingErrors({ spec }: VirtualMachine, sizing: Sizing): FieldError[] {
  const template = spec.template.spec;
  if (!template) return [];
  const draft = { spec: template, annotations: { ...spec.template.metadata?.annotations } };
  const { conflicts } = withInstancetypeAndPreference(draft, sizing, 'spec.template.spec');
  return [...conflicts, ...preferenceErrors(sizing, template)];
}

/** Labels that say what is so are not for templates to say. */
function templateLabelErrors({ spec }: VirtualMachine): FieldError[] {
  const path = 'spec.template.metadata.labels';
  return reservedLabels(spec.template.metadata?.labels).map((label) =>
    forbidden(entry(child('', path), label), `the label is set by the controllers, as ${MACHINE_NAME_LABEL} is`),
  );
}

function machineOf(object: AdmissionRequest['object']): VirtualMachine | undefined {
  return object && isWellFormed('virtualmachines', object) ? (object as VirtualMachine) : undefined;
}

import { child, type FieldError } from '../field-error.ts';
import { formatQuantity, parseQuantity } from '../quantity.ts';
import { withPreference } from './apply-preference.ts';
import type { Domain } from './domain.ts';
import type { GuestDraft, Sizing } from './guest-draft.ts';
import type { InstancetypeSpec } from './instancetype.ts';
import type { PreferenceSpec } from './preference.ts';
import type { Cpu } from './processor-and-memory.ts';
import { processorLayout } from './processor-layout.ts';

/**
 * Makes a guest of the size that an instance type says, with what a preference fills in. An instance type is the one who
 * says its part: a template that says the same, even in the same words, is refused. A preference never gets in the way.
 */

export type Sized =
  | { readonly draft: GuestDraft; readonly conflicts: readonly [] }
  | { readonly draft?: undefined; readonly conflicts: readonly FieldError[] };

/** The guest in its size, or where its template and the instance type say two things. `path` is that of the spec. */
export function withInstancetypeAndPreference(draft: GuestDraft, sizing: Sizing, path: string): Sized {
  const { instancetype, preference } = sizing;
  const conflicts = instancetype ? instancetypeConflicts(draft, instancetype, path) : [];
  if (conflicts.length > 0) return { conflicts };
  const sized = instancetype ? withSize(draft, instancetype, preference) : draft;
  return { draft: preference ? withPreference(sized, preference) : sized, conflicts: [] };
}

function instancetypeConflicts(draft: GuestDraft, instancetype: InstancetypeSpec, path: string): FieldError[] {
  const { spec, annotations } = draft;
  const { domain } = spec;
  const fields = [
    ...(instancetype.nodeSelector && spec.nodeSelector ? ['nodeSelector'] : []),
    ...(instancetype.schedulerName && spec.schedulerName ? ['schedulerName'] : []),
    ...cpuConflicts(domain, instancetype),
    ...memoryConflicts(domain),
    ...(instancetype.ioThreadsPolicy !== undefined && domain.ioThreadsPolicy !== undefined
      ? ['domain.ioThreadsPolicy']
      : []),
    ...(instancetype.launchSecurity && domain.launchSecurity ? ['domain.launchSecurity'] : []),
    ...(isFilled(instancetype.gpus) && isFilled(domain.devices.gpus) ? ['domain.devices.gpus'] : []),
    ...(isFilled(instancetype.hostDevices) && isFilled(domain.devices.hostDevices)
      ? ['domain.devices.hostDevices']
      : []),
  ];
  const contradicted = Object.entries(instancetype.annotations ?? {})
    .filter(([key, value]) => Object.hasOwn(annotations, key) && annotations[key] !== value)
    .map(([key]) => `annotations.${key}`);
  return [...fields.map((field) => child(path, field)), ...contradicted].map(conflict);
}

function conflict(field: string): FieldError {
  return {
    type: 'FieldValueInvalid',
    field,
    message: `VM field(s) ${field} conflicts with selected instance type`,
  };
}

function isFilled(list: readonly unknown[] | undefined): boolean {
  return list !== undefined && list.length > 0;
}

function cpuConflicts({ cpu = {}, resources }: Domain, { cpu: given }: InstancetypeSpec): string[] {
  const topology = (['sockets', 'cores', 'threads'] as const).filter((field) => (cpu[field] ?? 0) !== 0);
  const isTwice = (own: unknown, other: unknown): boolean => Boolean(own) && other !== undefined;
  return [
    ...(hasResource(resources?.requests, 'cpu') ? ['domain.resources.requests.cpu'] : []),
    ...(hasResource(resources?.limits, 'cpu') ? ['domain.resources.limits.cpu'] : []),
    ...topology.map((field) => `domain.cpu.${field}`),
    ...(isTwice(cpu.model, given.model) ? ['domain.cpu.model'] : []),
    ...(isTwice(cpu.dedicatedCpuPlacement, given.dedicatedCPUPlacement) ? ['domain.cpu.dedicatedCpuPlacement'] : []),
    ...(isTwice(cpu.isolateEmulatorThread, given.isolateEmulatorThread) ? ['domain.cpu.isolateEmulatorThread'] : []),
    ...(isTwice(cpu.numa, given.numa) ? ['domain.cpu.numa'] : []),
    ...(isTwice(cpu.realtime, given.realtime) ? ['domain.cpu.realtime'] : []),
  ];
}

/** One is enough: whoever says how much memory there is says it in one place or in another. */
function memoryConflicts({ memory, resources }: Domain): string[] {
  if (memory) return ['domain.memory'];
  if (hasResource(resources?.requests, 'memory')) return ['domain.resources.requests.memory'];
  return hasResource(resources?.limits, 'memory') ? ['domain.resources.limits.memory'] : [];
}

function hasResource(amounts: Readonly<Record<string, unknown>> | undefined, name: string): boolean {
  return amounts !== undefined && Object.hasOwn(amounts, name);
}

function withSize(
  draft: GuestDraft,
  instancetype: InstancetypeSpec,
  preference: PreferenceSpec | undefined,
): GuestDraft {
  const { spec } = draft;
  const { domain } = spec;
  const { nodeSelector, schedulerName, ioThreadsPolicy, ioThreads, launchSecurity, gpus, hostDevices } = instancetype;
  return {
    annotations: { ...instancetype.annotations, ...draft.annotations },
    spec: {
      ...spec,
      ...(nodeSelector ? { nodeSelector } : {}),
      ...(schedulerName ? { schedulerName } : {}),
      domain: {
        ...domain,
        cpu: sizedCpu(domain.cpu, instancetype, preference),
        memory: sizedMemory(instancetype),
        ...sizedResources(domain, instancetype),
        ...(ioThreadsPolicy === undefined ? {} : { ioThreadsPolicy }),
        ...(ioThreads && !domain.ioThreads ? { ioThreads } : {}),
        ...(launchSecurity ? { launchSecurity } : {}),
        devices: {
          ...domain.devices,
          ...(isFilled(gpus) ? { gpus } : {}),
          ...(isFilled(hostDevices) ? { hostDevices } : {}),
        },
      },
    },
  };
}

function sizedCpu(cpu: Cpu = {}, { cpu: given }: InstancetypeSpec, preference: PreferenceSpec | undefined): Cpu {
  const { model, dedicatedCPUPlacement, isolateEmulatorThread, numa, realtime, maxSockets } = given;
  return {
    ...cpu,
    ...(model === undefined ? {} : { model }),
    ...(dedicatedCPUPlacement === undefined ? {} : { dedicatedCpuPlacement: dedicatedCPUPlacement }),
    ...(isolateEmulatorThread === undefined ? {} : { isolateEmulatorThread }),
    ...(numa ? { numa } : {}),
    ...(realtime ? { realtime } : {}),
    ...(maxSockets === undefined ? {} : { maxSockets }),
    ...processorLayout(given.guest, preference),
  };
}

function sizedMemory({ memory }: InstancetypeSpec): NonNullable<Domain['memory']> {
  const { guest, hugepages, maxGuest } = memory;
  return { guest, ...(hugepages ? { hugepages } : {}), ...(maxGuest === undefined ? {} : { maxGuest }) };
}

/** Where memory is overcommitted, the launcher asks for less than the guest sees. */
function sizedResources(domain: Domain, { memory }: InstancetypeSpec): Pick<Domain, 'resources'> {
  const percent = memory.overcommitPercent ?? 0;
  const guest = parseQuantity(memory.guest);
  if (percent <= 0 || guest === undefined) return {};
  const bytes = (guest.amount * BigInt(100 - percent)) / 100n / UNIT;
  const requests = { ...domain.resources?.requests, memory: formatQuantity({ ...guest, amount: bytes * UNIT }) };
  return { resources: { ...domain.resources, requests } };
}

/** Quantities count in billionths. */
const UNIT = 1_000_000_000n;

import { child, type FieldError, invalid, required } from '../field-error.ts';
import { dnsLabelErrors, dnsSubdomainErrors } from '../names.ts';
import type { Domain } from './domain.ts';
import { type FeatureGate, isFeatureGateEnabled } from './feature-gates.ts';
import type { KubeVirtConfiguration } from './kube-virt.ts';
import { runStrategyErrors } from './run-strategy.ts';
import { deviceErrors } from './validate-devices.ts';
import { machineErrors } from './validate-machine.ts';
import { isMore, leastErrors, notNegativeErrors, positiveErrors } from './validate-quantities.ts';
import { volumeErrors } from './validate-volumes.ts';
import type { VirtualMachineSpec } from './virtual-machine.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';

/** What the schema cannot say of machines and guests. Wants them with their defaults, as they will be stored. */

const RECEIVING: FeatureGate = 'DecentralizedLiveMigration';
/** What KubeVirt asks for at least; with less, not even firmware gets anywhere. */
const MEMORY_LEAST = '1M';

/** What is wrong with a machine. Its template is held to what a guest is held to, but for its size. */
export function virtualMachineErrors(spec: VirtualMachineSpec, configuration: KubeVirtConfiguration): FieldError[] {
  const { template, instancetype, preference } = spec;
  const templatePath = 'spec.template.spec';
  return [
    ...runStrategyErrors(spec, 'spec', isFeatureGateEnabled(RECEIVING, configuration)),
    ...matcherErrors(instancetype, 'spec.instancetype', [
      'virtualmachineinstancetype',
      'virtualmachineclusterinstancetype',
    ]),
    ...matcherErrors(preference, 'spec.preference', ['virtualmachinepreference', 'virtualmachineclusterpreference']),
    ...(template.spec ? guestErrors(template.spec, templatePath) : [required(templatePath)]),
  ];
}

/** What is wrong with a guest that is to be made. */
export function virtualMachineInstanceErrors(spec: VirtualMachineInstanceSpec): FieldError[] {
  return [...guestErrors(spec, 'spec'), ...sizeErrors(spec.domain, 'spec.domain')];
}

type Matcher = VirtualMachineSpec['instancetype'];

function matcherErrors(matcher: Matcher, path: string, kinds: readonly string[]): FieldError[] {
  if (!matcher) return [];
  const { name, inferFromVolume, kind } = matcher;
  return [
    ...(name || inferFromVolume ? [] : [required(child(path, 'name'), 'a name, or a volume to infer it from')]),
    ...(name && inferFromVolume
      ? [invalid(child(path, 'inferFromVolume'), inferFromVolume, 'there is a name, too')]
      : []),
    // Users write plurals and capitals here, as in kubectl.
    ...(!kind || kinds.includes(kind.toLowerCase().replace(/s$/, ''))
      ? []
      : [invalid(child(path, 'kind'), kind, `must be one of ${kinds.join(', ')}`)]),
  ];
}

function guestErrors(spec: VirtualMachineInstanceSpec, path: string): FieldError[] {
  const { hostname, subdomain, volumes = [], terminationGracePeriodSeconds: grace } = spec;
  return [
    ...volumes.flatMap((volume, index) => volumeErrors(volume, child(child(path, 'volumes'), index))),
    ...deviceErrors(spec, path),
    ...resourceErrors(spec.domain, child(path, 'domain')),
    ...machineErrors(spec.domain, child(path, 'domain')),
    ...(hostname ? dnsLabelErrors(hostname).map((detail) => invalid(child(path, 'hostname'), hostname, detail)) : []),
    ...(subdomain
      ? dnsSubdomainErrors(subdomain).map((detail) => invalid(child(path, 'subdomain'), subdomain, detail))
      : []),
    ...(grace !== undefined && grace < 0
      ? [invalid(child(path, 'terminationGracePeriodSeconds'), grace, 'must not be negative')]
      : []),
  ];
}

/** A guest without memory cannot be made. */
function sizeErrors({ memory, resources }: Domain, path: string): FieldError[] {
  const amounts = [
    memory?.guest,
    resources?.requests?.['memory'],
    resources?.limits?.['memory'],
    memory?.hugepages?.pageSize,
  ];
  return amounts.some((amount) => amount !== undefined)
    ? []
    : [required(child(path, 'memory.guest'), 'or resources.requests.memory, or resources.limits.memory')];
}

function resourceErrors(domain: Domain, path: string): FieldError[] {
  const { resources = {}, memory } = domain;
  return [
    ...['cpu', 'memory'].flatMap((name) => requestErrors(resources, name, child(path, 'resources'))),
    ...positiveErrors(memory?.guest, child(path, 'memory.guest')),
    ...leastErrors(memory?.guest, MEMORY_LEAST, child(path, 'memory.guest')),
    ...leastErrors(resources.requests?.['memory'], MEMORY_LEAST, child(path, 'resources.requests.memory')),
    ...leastErrors(resources.limits?.['memory'], MEMORY_LEAST, child(path, 'resources.limits.memory')),
    ...guestWithinLimits(domain, path),
  ];
}

function requestErrors(resources: NonNullable<Domain['resources']>, name: string, path: string): FieldError[] {
  const request = resources.requests?.[name];
  const limit = resources.limits?.[name];
  const requestPath = child(path, `requests.${name}`);
  return [
    ...notNegativeErrors(request, requestPath),
    ...notNegativeErrors(limit, child(path, `limits.${name}`)),
    ...(isMore(request, limit) ? [invalid(requestPath, request, `must not be more than the limit, ${limit}`)] : []),
  ];
}

function guestWithinLimits({ memory, resources }: Domain, path: string): FieldError[] {
  const limit = resources?.limits?.['memory'];
  return isMore(memory?.guest, limit)
    ? [invalid(child(path, 'memory.guest'), memory?.guest, `must not be more than the limit, ${limit}`)]
    : [];
}

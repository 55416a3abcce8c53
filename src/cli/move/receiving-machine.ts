import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';
import type { Volume } from '../../api/kubevirt/volumes.ts';
import { RESTORE_STRATEGY_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';

/** The machine that waits where a guest goes. */

/** On all that a move made: which move. */
export const MOVE_LABEL = 'godwit.dev/move';
/** On the same: the epoch in which the guest was to leave. What a move of an earlier one made may hold the guest of then. */
export const EPOCH_ANNOTATION = 'godwit.dev/move-epoch';
/** On the same: the attempt that uses it. Runs that share the halves share it, and what has another one is another's. */
export const RUN_ANNOTATION = 'godwit.dev/move-run';

type Names = ReadonlyMap<string, string>;

/** Where something is, and what it is called there. */
export interface Place {
  readonly namespace: string;
  readonly name: string;
}

/** Annotations that are about the object that they are on, such as the node that a claim is for, and not about what it is. */
const OWN_ANNOTATIONS =
  /^(?:kubectl\.kubernetes\.io\/last-applied-configuration$|godwit\.dev\/|pv\.kubernetes\.io\/|volume(?:\.beta)?\.kubernetes\.io\/|cdi\.kubevirt\.io\/)/;

/** What a move is known by, and the epoch in which the guest is to leave. */
export interface MoveMark {
  readonly id: string;
  readonly epoch: string;
}

/** An object as it would be at another place, made by a move. */
export function copyOf<T extends KubeObject>(object: T, { id, epoch }: MoveMark, name: string, namespace?: string): T {
  const { labels, annotations = {} } = object.metadata;
  const kept = Object.entries(annotations).filter(([key]) => !OWN_ANNOTATIONS.test(key));
  const { status: _, ...rest } = object;
  return {
    ...rest,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      labels: { ...labels, [MOVE_LABEL]: id },
      annotations: { ...Object.fromEntries(kept), [EPOCH_ANNOTATION]: epoch },
    },
  } as unknown as T;
}

/**
 * The machine to be made: it waits, and is to be what the other one is. What the guest is known by stands in its template,
 * so that a later start changes none of it.
 */
export function receivingMachine(
  machine: VirtualMachine,
  guest: VirtualMachineInstance | undefined,
  to: Place & MoveMark & { readonly networks: Names },
): VirtualMachine {
  const made = copyOf(machine, to, to.name, to.namespace);
  const { running: _, dataVolumeTemplates: __, instancetype, preference, ...spec } = machine.spec;
  const annotations = {
    ...made.metadata.annotations,
    [RESTORE_STRATEGY_ANNOTATION]: effectiveRunStrategy(machine.spec),
  };
  return {
    ...made,
    metadata: { ...made.metadata, annotations },
    spec: {
      ...spec,
      // Copies of what it refers to are kept per machine.
      ...(instancetype ? { instancetype: withoutRevision(instancetype) } : {}),
      ...(preference ? { preference: withoutRevision(preference) } : {}),
      runStrategy: 'WaitAsReceiver',
      template: { ...spec.template, spec: templateOf(spec.template.spec, guest, to.networks) },
    },
  } as VirtualMachine;
}

function withoutRevision<T extends { readonly revisionName?: string }>(matcher: T): Omit<T, 'revisionName'> {
  const { revisionName: _, ...rest } = matcher;
  return rest;
}

function templateOf(
  spec: VirtualMachineInstanceSpec = { domain: { devices: {} } },
  guest: VirtualMachineInstance | undefined,
  networks: Names,
): VirtualMachineInstanceSpec {
  const { domain } = spec;
  const own = guest?.spec.domain;
  const uuid = own?.firmware?.uuid || guest?.metadata.uid;
  const serial = own?.firmware?.serial;
  const firmware = { ...domain.firmware, ...(uuid ? { uuid } : {}), ...(serial ? { serial } : {}) };
  const addresses = new Map(
    (own?.devices.interfaces ?? []).flatMap(({ name, macAddress }) => {
      const mac = macAddress || guest?.status?.interfaces?.find((each) => each.name === name)?.mac;
      return mac ? [[name, mac] as const] : [];
    }),
  );
  // Where a template has no interfaces its guest gets one, and has its address.
  const interfaces = domain.devices.interfaces ?? own?.devices.interfaces;
  const joined = domain.devices.interfaces ? spec.networks : (guest?.spec.networks ?? spec.networks);
  return {
    ...spec,
    domain: {
      ...domain,
      ...(Object.keys(firmware).length > 0 ? { firmware } : {}),
      devices: {
        ...domain.devices,
        ...(interfaces ? { interfaces: interfaces.map((each) => withAddress(each, addresses.get(each.name))) } : {}),
      },
    },
    ...(joined ? { networks: joined.map((each) => mapped(each, networks)) } : {}),
    ...(spec.volumes ? { volumes: spec.volumes.map(onClaim) } : {}),
  } as VirtualMachineInstanceSpec;
}

function withAddress<T extends object>(each: T, macAddress: string | undefined): T {
  return macAddress === undefined ? each : { ...each, macAddress };
}

type Network = NonNullable<VirtualMachineInstanceSpec['networks']>[number];

function mapped(network: Network, networks: Names): Network {
  const { multus } = network;
  const networkName = multus && networks.get(multus.networkName);
  return multus && networkName !== undefined ? { ...network, multus: { ...multus, networkName } } : network;
}

/** A DataVolume would be filled once more from where it came; what comes is copied onto a blank claim. */
function onClaim(volume: Volume): Volume {
  const { dataVolume, ...rest } = volume;
  if (!dataVolume) return volume;
  const { name: claimName, hotpluggable } = dataVolume;
  return { ...rest, persistentVolumeClaim: { claimName, ...(hotpluggable === undefined ? {} : { hotpluggable }) } };
}

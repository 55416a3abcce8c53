import type { Sizing } from '../../api/kubevirt/guest-draft.ts';
import type { Instancetype } from '../../api/kubevirt/instancetype.ts';
import type { Preference } from '../../api/kubevirt/preference.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';

/** The instance type and the preference that a machine names, as far as they are there yet. */

function resource<T extends KubeObject>(kind: string, plural: string, namespaced: boolean): Resource<T> {
  return { group: 'instancetype.kubevirt.io', version: 'v1beta1', plural, kind, namespaced };
}

const INSTANCETYPES = {
  ofNamespace: resource<Instancetype>('VirtualMachineInstancetype', 'virtualmachineinstancetypes', true),
  ofCluster: resource<Instancetype>('VirtualMachineClusterInstancetype', 'virtualmachineclusterinstancetypes', false),
};
const PREFERENCES = {
  ofNamespace: resource<Preference>('VirtualMachinePreference', 'virtualmachinepreferences', true),
  ofCluster: resource<Preference>('VirtualMachineClusterPreference', 'virtualmachineclusterpreferences', false),
};

/** Whoever applies a machine before its instance type means no harm: the machine waits until it is there. */
export async function sizingOf(client: Client, machine: VirtualMachine, signal: AbortSignal): Promise<Sizing> {
  const { spec, metadata } = machine;
  const [instancetype, preference] = await Promise.all([
    find(client, INSTANCETYPES, spec.instancetype, metadata.namespace ?? '', signal),
    find(client, PREFERENCES, spec.preference, metadata.namespace ?? '', signal),
  ]);
  return {
    ...(instancetype ? { instancetype: instancetype.spec } : {}),
    ...(preference ? { preference: preference.spec } : {}),
  };
}

async function find<T extends KubeObject>(
  client: Client,
  resources: { readonly ofNamespace: Resource<T>; readonly ofCluster: Resource<T> },
  matcher: VirtualMachine['spec']['instancetype'],
  namespace: string,
  signal: AbortSignal,
): Promise<T | undefined> {
  // A revision is a copy of what was once, which only the controller looks into.
  if (!matcher?.name || matcher.revisionName) return undefined;
  const isOfNamespace = matcher.kind !== undefined && matcher.kind !== '' && !/cluster/i.test(matcher.kind);
  const resource = isOfNamespace ? resources.ofNamespace : resources.ofCluster;
  return client.find(resource, namespace, matcher.name, signal);
}

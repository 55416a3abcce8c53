import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';
import { claimNameOf } from '../../control/volume-claims.ts';

/** What a machine refers to by name: its guest cannot be elsewhere without it. */

/** Something that is referred to, by whom. */
export interface Reference {
  readonly name: string;
  /** Whether the guest does without. */
  readonly isOptional: boolean;
}

/** A claim that a volume is on. */
export interface ClaimReference {
  readonly name: string;
  readonly volume: string;
  /** Whether the guest only reads it, and writes elsewhere: what is in it does not go along. */
  readonly isBelow: boolean;
}

export interface References {
  readonly claims: readonly ClaimReference[];
  readonly secrets: readonly Reference[];
  readonly configMaps: readonly Reference[];
  readonly serviceAccounts: readonly string[];
}

/** All that a machine's template refers to, each name once. */
export function referencesOf({ spec }: Pick<VirtualMachine, 'spec'>): References {
  const guest: VirtualMachineInstanceSpec = spec.template.spec ?? { domain: { devices: {} } };
  const { volumes = [] } = guest;
  const [secrets, configMaps] = [new Names(), new Names()];
  const serviceAccounts = new Set<string>();
  for (const volume of volumes) {
    const { secret, configMap, containerDisk, serviceAccount } = volume;
    secrets.add(secret?.secretName, secret?.optional);
    configMaps.add(configMap?.name, configMap?.optional);
    secrets.add(containerDisk?.imagePullSecret);
    for (const cloudInit of [volume.cloudInitNoCloud, volume.cloudInitConfigDrive]) {
      secrets.add(cloudInit?.secretRef?.name);
      secrets.add(cloudInit?.networkDataSecretRef?.name);
    }
    secrets.add(nameAt(volume.sysprep, 'secret', 'name'));
    configMaps.add(nameAt(volume.sysprep, 'configMap', 'name'));
    if (serviceAccount?.serviceAccountName) serviceAccounts.add(serviceAccount.serviceAccountName);
  }
  secrets.add(nameAt(guest.domain.firmware, 'kernelBoot', 'container', 'imagePullSecret'));
  for (const credential of credentialsOf(guest)) secrets.add(credential);
  return {
    claims: volumes.flatMap((volume) => {
      const name = claimNameOf(volume);
      return name === undefined ? [] : [{ name, volume: volume.name, isBelow: volume.ephemeral !== undefined }];
    }),
    secrets: secrets.all(),
    configMaps: configMaps.all(),
    serviceAccounts: [...serviceAccounts],
  };
}

/** Secrets of keys and passwords that are put into the guest. */
function credentialsOf({ accessCredentials }: { readonly accessCredentials?: unknown }): string[] {
  if (!Array.isArray(accessCredentials)) return [];
  return accessCredentials.flatMap((each: unknown) =>
    ['sshPublicKey', 'userPassword'].flatMap((kind) => nameAt(each, kind, 'source', 'secret', 'secretName') ?? []),
  );
}

/** A name in what no schema describes. */
function nameAt(value: unknown, ...path: readonly string[]): string | undefined {
  let at: unknown = value;
  for (const field of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, field)) return undefined;
    at = (at as Record<string, unknown>)[field];
  }
  return typeof at === 'string' && at !== '' ? at : undefined;
}

/** Names in the order in which they were met; whoever needs one needs it. */
class Names {
  readonly #isOptional = new Map<string, boolean>();

  add(name: string | undefined, isOptional = false): void {
    if (name) this.#isOptional.set(name, isOptional && (this.#isOptional.get(name) ?? true));
  }

  all(): Reference[] {
    return [...this.#isOptional].map(([name, isOptional]) => ({ name, isOptional }));
  }
}

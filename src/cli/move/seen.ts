import type { Instancetype } from '../../api/kubevirt/instancetype.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { Preference } from '../../api/kubevirt/preference.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Resource } from '../../kube/resource.ts';
import type { PersistentVolumeClaim, StorageClass } from '../../migration/fit/objects.ts';
import type { Place } from './receiving-machine.ts';

/** What is known of the two sides before a move. */

type ByName<T> = ReadonlyMap<string, T>;

/** What was asked for. */
export interface MoveRequest {
  readonly from: Place;
  readonly to: Place;
  /** By the name of the source's storage class. */
  readonly storageClasses: ByName<string>;
  /** By the name of the source's network. */
  readonly networks: ByName<string>;
  /** Where the target's synchronization is reached, where that is not what the target says itself. */
  readonly connectURL: string | undefined;
  /** As users name the target cluster; undefined for the same one. */
  readonly toCluster: string | undefined;
  /** Where the target cluster's API is; undefined for the same one. */
  readonly toServer: string | undefined;
  /** What the command line says of clusters for the way back. */
  readonly back: string;
}

/** A kind of which a machine refers to one object, with that object. */
export interface SeenSizing<T extends KubeObject> {
  readonly resource: Resource<T>;
  readonly name: string;
  readonly object: T | undefined;
}

/** Whether a cluster trusts another; undefined where that may not be read. */
export type TrustState = 'Trusted' | 'Revoking' | 'Expired' | 'Broken' | 'None' | undefined;

/** What both sides have. */
interface SeenSide {
  /** By the names that the machine there refers to, or will. */
  readonly claims: ByName<PersistentVolumeClaim>;
  readonly secrets: ByName<KubeObject>;
  readonly configMaps: ByName<KubeObject>;
  readonly instancetype: SeenSizing<Instancetype> | undefined;
  readonly preference: SeenSizing<Preference> | undefined;
  readonly guest: VirtualMachineInstance | undefined;
  /** Undefined where it may not be read. */
  readonly configuration: KubeVirtConfiguration | undefined;
  readonly clusterId: string | undefined;
  /** Of the other cluster. */
  readonly trust: TrustState;
  /** All of the namespace. */
  readonly migrations: readonly VirtualMachineInstanceMigration[];
  /** What may not be read, in words. */
  readonly denied: readonly string[];
}

export interface SeenSource extends SeenSide {
  readonly machine: VirtualMachine;
}

export interface SeenTarget extends SeenSide {
  readonly machine: VirtualMachine | undefined;
  /** The namespace; undefined where there is none, or it may not be read. */
  readonly namespace: KubeObject | undefined | 'unknown';
  readonly serviceAccounts: ReadonlySet<string>;
  /** Undefined where they may not be read. */
  readonly storageClasses: ByName<StorageClass> | undefined;
  /** Where its synchronization is reached. */
  readonly addresses: readonly string[];
}

/** All of it. */
export interface SeenMove {
  readonly request: MoveRequest;
  readonly source: SeenSource;
  readonly target: SeenTarget;
  readonly isSameCluster: boolean;
}

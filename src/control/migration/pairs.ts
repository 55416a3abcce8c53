import { labelOf } from '../../api/kubevirt/complete-migration.ts';
import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { migrationRole, pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATION_GUEST_LABEL } from '../../api/kubevirt/well-known.ts';
import type { Client } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import {
  kubeVirts,
  virtualMachineInstanceMigrations,
  virtualMachineInstances,
  virtualMachines,
} from '../../kube/kubevirt-resources.ts';
import type { Node, PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { type MigrationFacts, ownState, type PairFacts } from '../../migration/phase/facts.ts';
import type { ControlContext } from '../context.ts';
import { type LauncherPod, nodes, persistentVolumeClaims, pods } from '../resources.ts';
import { KeyClaims } from './key-claims.ts';
import { guestKeyOf, guestKeysOf, migrationUidsOf, pairKeysOf, uidsOf } from './keys.ts';
import { type LocalPair, localPair } from './local-pair.ts';
import { adoption, claimedVolumes, receiverObjection } from './receiver.ts';
import { describedSource, describedTarget } from './sides.ts';

/** Finds the halves of pairs, and what is to be known of them. */
export class Pairs {
  readonly #client: Client;
  readonly #claims: KeyClaims;
  readonly #migrations: Informer<VirtualMachineInstanceMigration>;
  readonly #guests: Informer<VirtualMachineInstance>;
  readonly #pods: Informer<LauncherPod>;
  readonly #nodes: Informer<Node>;
  readonly #kubeVirts: Informer<KubeVirt>;
  readonly #volumeClaims: Informer<PersistentVolumeClaim>;
  /** UIDs of halves whose other ones are in another cluster. */
  readonly #foreign = new Set<string>();

  constructor({ client, informers }: Pick<ControlContext, 'client' | 'informers'>) {
    this.#client = client;
    this.#claims = new KeyClaims(client);
    this.#migrations = informers.of(virtualMachineInstanceMigrations, {
      guest: guestKeysOf,
      uid: uidsOf,
      pair: pairKeysOf,
    });
    this.#guests = informers.of(virtualMachineInstances);
    this.#pods = informers.of(pods, { migration: migrationUidsOf, uid: uidsOf });
    this.#nodes = informers.of(nodes);
    this.#kubeVirts = informers.of(kubeVirts);
    this.#volumeClaims = informers.of(persistentVolumeClaims);
  }

  /** All halves in this cluster that have the key of a migration, itself included. */
  withKeyOf({ spec }: VirtualMachineInstanceMigration): readonly VirtualMachineInstanceMigration[] {
    const key = pairKeyOf(spec);
    return key === undefined ? [] : this.#migrations.byIndex('pair', key);
  }

  /** The halves of the pair that are here; undefined for what is no half. */
  of(migration: VirtualMachineInstanceMigration, guest: VirtualMachineInstance | undefined): LocalPair | undefined {
    const byUid = (uid: string): VirtualMachineInstanceMigration | undefined => this.#migrations.byIndex('uid', uid)[0];
    return localPair(migration, guest, { withKeyOf: (each) => this.withKeyOf(each), byUid });
  }

  /**
   * Whether it is certain which halves of the pair are in this cluster: one that is here may not have been heard of yet, and
   * where it is decides what both need of slots.
   */
  async isWholeKnown(
    migration: VirtualMachineInstanceMigration,
    guest: VirtualMachineInstance | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { uid = '' } = migration.metadata;
    const { source, target } = this.of(migration, guest) ?? {};
    const { sourceState, targetState } = ownState({ migration, guest }) ?? {};
    const side = migrationRole(migration.spec) === 'source' ? targetState : sourceState;
    if ((source && target) || side?.migrationUID === undefined || this.#foreign.has(uid)) return true;
    const { domainNamespace: namespace = '', domainName = '', migrationUID } = side;
    const labelSelector = `${MIGRATION_GUEST_LABEL}=${labelOf(domainName)}`;
    const { items } = await this.#client.list(virtualMachineInstanceMigrations, { namespace, labelSelector }, signal);
    if (items.some(({ metadata }) => metadata.uid === migrationUID)) return false;
    this.#foreign.add(uid);
    return true;
  }

  /** What is known of a half beyond what is known of every migration. */
  async facts(
    migration: VirtualMachineInstanceMigration,
    guest: VirtualMachineInstance | undefined,
    slots: MigrationFacts['slots'],
    signal: AbortSignal,
  ): Promise<PairFacts | undefined> {
    const pair = this.of(migration, guest);
    if (!pair) return undefined;
    const role = migrationRole(migration.spec);
    const source = guest ? ownState({ migration, guest })?.sourceState : undefined;
    const volumes = guest ? this.volumesOf(guest) : [];
    const isHere = pair.source !== undefined && pair.target !== undefined;
    return {
      isKeyTaken: await this.#claims.isTaken(migration, signal),
      isSameGuest: pair.isSameGuest,
      partner: pair.isSameGuest ? (role === 'source' ? pair.target : pair.source) : undefined,
      isDescribed: guest !== undefined && this.described(migration, guest, slots) === undefined,
      objection: guest && role === 'target' ? receiverObjection(guest, source, volumes) : undefined,
      isAdopted: guest !== undefined && source !== undefined && adoption(guest, source) === undefined,
      isPeerReady: isHere || (role === 'target' ? source?.slots !== undefined : true),
      isRecordOld: role === 'source' && this.#isRecordOld(guest),
      isGivenAway: !guest && role === 'source' && (await this.#isGivenAway(migration, signal)),
    };
  }

  /** The state with all that this side has to tell; undefined where it is there. */
  described(
    migration: VirtualMachineInstanceMigration,
    guest: VirtualMachineInstance,
    held: MigrationFacts['slots'],
  ): MigrationState | undefined {
    const { source, target } = this.of(migration, guest) ?? {};
    // Halves that share a ledger need not tell each other what is in it.
    const slots = held === 'elsewhere' || (source && target) ? undefined : held;
    if (migrationRole(migration.spec) === 'target')
      return describedTarget({ migration, guest, slots, volumes: this.volumesOf(guest) });
    const { holder } = guest.status?.rightToRun ?? {};
    const [pod] = this.#pods.byIndex('uid', holder?.podUID ?? '');
    const nodeLabels = this.#nodes.get(holder?.node ?? '')?.metadata.labels ?? {};
    return describedSource({ migration, guest, slots, pod, nodeLabels });
  }

  /** The disks that a guest has on claims. */
  volumesOf(guest: VirtualMachineInstance): ReturnType<typeof claimedVolumes> {
    const { namespace = '' } = guest.metadata;
    return claimedVolumes(guest, (name) => this.#volumeClaims.get(`${namespace}/${name}`));
  }

  /** The guest of a half, as far as it was heard of. */
  guestOf(migration: VirtualMachineInstanceMigration): VirtualMachineInstance | undefined {
    return this.#guests.get(guestKeyOf(migration));
  }

  /** Lets the key of a half go that is over. */
  release(migration: VirtualMachineInstanceMigration, signal: AbortSignal): Promise<void> {
    this.#foreign.delete(migration.metadata.uid ?? '');
    return this.#claims.release(migration, signal);
  }

  #isRecordOld(guest: VirtualMachineInstance | undefined): boolean {
    const node = guest?.status?.rightToRun?.holder?.node ?? '';
    return [...this.#kubeVirts.list()].some(({ status }) => status?.restoration?.unheard?.includes(node) === true);
  }

  /** A guest may be gone before anybody saw that it had moved; its machine remembers, before the guest may go. */
  async #isGivenAway(
    { metadata, spec, status }: VirtualMachineInstanceMigration,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { sourceState } = status?.migrationState ?? {};
    const machine: VirtualMachine | undefined = await this.#client.find(
      virtualMachines,
      metadata.namespace ?? '',
      spec.vmName ?? '',
      signal,
    );
    const { grantedAway, epoch = 0 } = machine?.status?.rightToRun ?? {};
    return grantedAway === true && sourceState?.epoch !== undefined && epoch > sourceState.epoch;
  }
}

import { selectorSignature } from '../../api/kubevirt/validate-migration-policy.ts';
import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { migrationPolicies, virtualMachineInstanceMigrations } from '../../kube/kubevirt-resources.ts';
import { controllerOf } from '../../kube/owner.ts';
import { keyOf, type Resource } from '../../kube/resource.ts';
import type { SharedInformers } from '../../kube/shared-informers.ts';
import { selectorFrom } from '../../machinery/selectors.ts';
import type { DisruptionBudget } from '../../migration/eviction/disruption-budget.ts';
import { disruptionBudgets } from './disruption-budgets.ts';

/**
 * Objects that stand in the way of others: of each kind there may be thousands, so they are found by an index, and read
 * once more before anybody is refused for them. Two that are made at the same instant may miss each other here: which
 * one of them counts is for the controllers to say.
 */
export interface Rivals {
  /** Migrations of the same guest or with the same key that are not over. */
  ofMigration(
    migration: VirtualMachineInstanceMigration,
    signal: AbortSignal,
  ): Promise<readonly VirtualMachineInstanceMigration[]>;
  /** Policies that select by the same labels. */
  ofPolicy(policy: MigrationPolicy, signal: AbortSignal): Promise<readonly MigrationPolicy[]>;
  /** Whether a budget that is no guest's covers a pod: the eviction API fails for pods that have two. */
  hasForeignBudget(pod: KubeObject): boolean;
  /** Remembers what was let pass: who asks next may be faster than the watch that tells of it. */
  noteMigration(migration: VirtualMachineInstanceMigration): void;
  /** The same of a policy. */
  notePolicy(policy: MigrationPolicy): void;
}

/** The rivals on a cluster. */
export class IndexedRivals implements Rivals {
  /** Resolves when all objects are known. */
  readonly synced: Promise<unknown>;
  readonly #migrations: FreshIndex<VirtualMachineInstanceMigration>;
  readonly #policies: FreshIndex<MigrationPolicy>;
  readonly #budgets: Informer<DisruptionBudget>;

  constructor(client: Client, informers: SharedInformers) {
    const migrations = informers.of(virtualMachineInstanceMigrations, { rivalry: migrationValues });
    const policies = informers.of(migrationPolicies, { rivalry: policyValues });
    this.#migrations = new FreshIndex(client, virtualMachineInstanceMigrations, migrations, migrationValues);
    this.#policies = new FreshIndex(client, migrationPolicies, policies, policyValues);
    this.#budgets = informers.of(disruptionBudgets, { foreign: foreignIn });
    this.synced = Promise.all([migrations.synced, policies.synced, this.#budgets.synced]);
  }

  async ofMigration(
    migration: VirtualMachineInstanceMigration,
    signal: AbortSignal,
  ): Promise<readonly VirtualMachineInstanceMigration[]> {
    const found = await this.#migrations.like(migration, (each) => !isFinalMigration(each), signal);
    return found.filter((each) => !isFinalMigration(each));
  }

  ofPolicy(policy: MigrationPolicy, signal: AbortSignal): Promise<readonly MigrationPolicy[]> {
    return this.#policies.like(policy, () => true, signal);
  }

  /** Nobody is refused for one that is gone already: those who are told no ask again. */
  hasForeignBudget({ metadata }: KubeObject): boolean {
    const { namespace = '', labels } = metadata;
    return this.#budgets.byIndex('foreign', namespace).some(({ spec }) => selectorFrom(spec?.selector).matches(labels));
  }

  noteMigration(migration: VirtualMachineInstanceMigration): void {
    this.#migrations.note(migration);
  }

  notePolicy(policy: MigrationPolicy): void {
    this.#policies.note(policy);
  }
}

/** By guest, and by key. */
function migrationValues({ metadata, spec }: VirtualMachineInstanceMigration): readonly string[] {
  const key = spec.sendTo?.key ?? spec.receive?.key;
  const guest = JSON.stringify([metadata.namespace, spec.vmName ?? spec.vmiName]);
  return key === undefined ? [guest] : [guest, JSON.stringify([key])];
}

/** The namespace, of a budget that is no guest's: those are as many as guests, and there is one of each. */
function foreignIn(budget: DisruptionBudget): readonly string[] {
  return controllerOf(budget)?.kind === 'VirtualMachineInstance' ? [] : [budget.metadata.namespace ?? ''];
}

function policyValues({ spec }: MigrationPolicy): readonly string[] {
  return [selectorSignature(spec)];
}

/** As many as may be under way between here and the watch, and more. */
const NOTED_MAX = 10_000;

/** An index whose findings are read anew from the server. */
class FreshIndex<T extends KubeObject> {
  readonly #client: Client;
  readonly #resource: Resource<T>;
  readonly #informer: Informer<T>;
  readonly #valuesOf: (object: T) => readonly string[];
  /** The newest object that was let pass of each value, the oldest note first. */
  readonly #noted = new Map<string, T>();

  constructor(
    client: Client,
    resource: Resource<T>,
    informer: Informer<T>,
    valuesOf: (object: T) => readonly string[],
  ) {
    this.#client = client;
    this.#resource = resource;
    this.#informer = informer;
    this.#valuesOf = valuesOf;
  }

  note(object: T): void {
    for (const value of this.#valuesOf(object)) {
      this.#noted.delete(value);
      this.#noted.set(value, object);
    }
    for (const [oldest] of this.#noted) {
      if (this.#noted.size <= NOTED_MAX) break;
      this.#noted.delete(oldest);
    }
  }

  /** What has a value in common with an object, itself aside, as it is now; of what is wanted of it. */
  async like(object: T, isWanted: (each: T) => boolean, signal: AbortSignal): Promise<readonly T[]> {
    const found = new Map<string, T>();
    for (const value of this.#valuesOf(object)) {
      for (const each of this.#informer.byIndex('rivalry', value)) if (isWanted(each)) found.set(keyOf(each), each);
      const noted = this.#noted.get(value);
      // What the watch has told of by now, it has told of better.
      if (noted && !this.#informer.get(keyOf(noted))) found.set(keyOf(noted), noted);
    }
    found.delete(keyOf(object));
    const fresh = await Promise.all([...found.values()].map((each) => this.#fresh(each, signal)));
    return fresh.filter((each) => each !== undefined);
  }

  #fresh({ metadata }: T, signal: AbortSignal): Promise<T | undefined> {
    return this.#client.find(this.#resource, metadata.namespace ?? '', metadata.name ?? '', signal);
  }
}

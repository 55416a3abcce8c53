import { createHash } from 'node:crypto';
import { migrationRole, pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import { ApiError } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstanceMigrations } from '../../kube/kubevirt-resources.ts';
import { holderOf, type Lease, leaseResource } from '../../kube/leader-lease.ts';

/**
 * Whose a key is. Of all migrations of one role that are not over only one may have it, also where two were made at the
 * same instant and no webhook could see it: whoever comes first creates an object whose name follows from the key, and
 * nobody else can. It is deleted when its migration is over; one that was left behind is taken over.
 */
export class KeyClaims {
  readonly #client: Client;
  /** UIDs of migrations that have theirs: nobody takes it away from them. */
  readonly #own = new Set<string>();

  constructor(client: Client) {
    this.#client = client;
  }

  /** Claims the key of a half; whether another migration has it. */
  async isTaken(migration: VirtualMachineInstanceMigration, signal: AbortSignal): Promise<boolean> {
    const { uid = '' } = migration.metadata;
    if (this.#own.has(uid)) return false;
    const isOwn = await this.#claim(migration, signal);
    if (isOwn) this.#own.add(uid);
    return !isOwn;
  }

  /** Gives the key of a half that is over back. */
  async release(migration: VirtualMachineInstanceMigration, signal: AbortSignal): Promise<void> {
    const { uid = '' } = migration.metadata;
    const name = claimName(migration);
    if (name === undefined) return;
    const lease = await this.#client.find(leaseResource, SYSTEM_NAMESPACE, name, signal);
    if (lease && holderOf(lease) === identityOf(migration)) {
      const { uid: leaseUid = '', resourceVersion = '' } = lease.metadata;
      try {
        const preconditions = { uid: leaseUid, resourceVersion };
        await this.#client.delete(leaseResource, SYSTEM_NAMESPACE, name, signal, { preconditions });
      } catch (error) {
        // Somebody else has it by now, or it is gone.
        if (!(error instanceof ApiError && (error.code === 404 || error.code === 409))) throw error;
      }
    }
    this.#own.delete(uid);
  }

  async #claim(migration: VirtualMachineInstanceMigration, signal: AbortSignal): Promise<boolean> {
    const name = claimName(migration);
    if (name === undefined) return true;
    const holderIdentity = identityOf(migration);
    const lease = await this.#client.find(leaseResource, SYSTEM_NAMESPACE, name, signal);
    if (lease && holderOf(lease) === holderIdentity) return true;
    if (lease && (await this.#isAlive(holderOf(lease), signal))) return false;
    const next: Lease = {
      ...(lease ?? { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' }),
      metadata: lease?.metadata ?? { name, namespace: SYSTEM_NAMESPACE },
      spec: { ...lease?.spec, holderIdentity },
    };
    // Who comes second meets a conflict, and looks again.
    if (lease) await this.#client.update(leaseResource, next, signal);
    else await this.#client.create(leaseResource, next, signal);
    return true;
  }

  async #isAlive(identity: string, signal: AbortSignal): Promise<boolean> {
    const [namespace = '', name = '', uid = ''] = identity.split('/');
    if (name === '') return false;
    const holder = await this.#client.find(virtualMachineInstanceMigrations, namespace, name, signal);
    return holder?.metadata.uid === uid && !isFinalMigration(holder);
  }
}

/** How the names of all claims begin: while there is one, a half is not over. */
export const KEY_CLAIM_PREFIX = 'godwit-key-';

/** A hash, since a key may be longer than a name, and is nothing that everybody should read. */
function claimName({ spec }: VirtualMachineInstanceMigration): string | undefined {
  const [role, key] = [migrationRole(spec), pairKeyOf(spec)];
  if (role === 'local' || key === undefined) return undefined;
  return `${KEY_CLAIM_PREFIX}${role}-${createHash('sha256').update(key).digest('hex').slice(0, 40)}`;
}

function identityOf({ metadata }: VirtualMachineInstanceMigration): string {
  return [metadata.namespace, metadata.name, metadata.uid].join('/');
}

import { withMigrationDefaults } from '../../api/kubevirt/complete-migration.ts';
import {
  migratedGuestErrors,
  migrationConflicts,
  migrationErrors,
  type PriorityRight,
  priorityRight,
} from '../../api/kubevirt/validate-migration.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATION_GUEST_LABEL } from '../../api/kubevirt/well-known.ts';
import type { FieldError } from '../../api/field-error.ts';
import type { JsonObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { isAllowed } from '../access-review.ts';
import { isOwnComponent } from '../identity.ts';
import { configuredErrors } from './configured.ts';
import type { WebhookContext } from './context.ts';
import { type AdmissionRequest, ALLOWED, invalidVerdict, type Verdict, verdictOf, type Webhook } from './review.ts';
import { isWellFormed } from './well-formed.ts';

/** Migrations: complete from their first moment, of a guest that can move, one at a time, and then as they are. */

type Migration = VirtualMachineInstanceMigration;

/** Fills in what a migration is found by and kept by, both names of fields that have two, and who wanted it. */
export function mutateMigration(): Webhook {
  return ({ operation, object, userInfo }) => {
    if (operation !== 'CREATE' || !object || !isWellFormed('virtualmachineinstancemigrations', object)) return ALLOWED;
    const migration = object as Migration;
    const { metadata, spec } = withMigrationDefaults(migration, {
      isOwnComponent: isOwnComponent(userInfo.username),
    });
    const patch: JsonObject[] = [];
    if (!deepEqual(spec, migration.spec)) patch.push({ op: 'replace', path: '/spec', value: spec as never });
    for (const field of ['labels', 'finalizers'] as const) {
      const value = metadata[field];
      if (value && !deepEqual(value, migration.metadata[field]))
        patch.push({ op: 'add', path: `/metadata/${field}`, value });
    }
    return { allowed: true, patch };
  };
}

/** Refuses migrations that could not begin, and those that would meet another. */
export function validateNewMigration(context: WebhookContext): Webhook {
  return async (request, signal) => {
    const { object, namespace = '' } = request;
    if (!object) return ALLOWED;
    const migration = { ...object, metadata: { ...object.metadata, namespace } } as Migration;
    const errors = await configuredErrors(context, signal, (configuration) =>
      migrationErrors(migration.spec, configuration),
    );
    if (errors.length > 0) return invalidVerdict(errors);
    const refusal = await priorityRefusal(migration, request, context.client, signal);
    if (refusal) return refusal;
    const guest = await context.client.find(virtualMachineInstances, namespace, migration.spec.vmName ?? '', signal);
    const obstacles = migratedGuestErrors(migration, guest);
    if (obstacles.length > 0) return invalidVerdict(obstacles);
    const conflicts = migrationConflicts(migration, await context.rivals.ofMigration(migration, signal));
    if (conflicts.length === 0 && !request.dryRun) context.rivals.noteMigration(migration);
    return verdictOf(conflicts);
  };
}

/** Why somebody may not ask for a migration of its class; undefined where they may. */
async function priorityRefusal(
  { spec }: Migration,
  { userInfo, namespace = '' }: AdmissionRequest,
  client: Client,
  signal: AbortSignal,
): Promise<Verdict | undefined> {
  const right = priorityRight(spec);
  if (!right || isOwnComponent(userInfo.username)) return undefined;
  if (await isAllowed(client, userInfo, { ...right, namespace }, signal)) return undefined;
  return priorityDenial(right, userInfo.username ?? '', namespace);
}

/** Says which right is missing, so that whoever gives rights need not guess. */
function priorityDenial({ verb, resource, group, name }: PriorityRight, user: string, namespace: string): Verdict {
  const what = `${JSON.stringify(name)} of resource ${JSON.stringify(resource)} in API group ${JSON.stringify(group)}`;
  const message = `User ${JSON.stringify(user)} cannot ${verb} ${what} in the namespace ${JSON.stringify(namespace)}`;
  const causes = [{ reason: 'FieldValueForbidden', message, field: 'spec.priority' }];
  return {
    allowed: false,
    status: { code: 403, reason: 'Forbidden', message: `spec.priority: Forbidden: ${message}`, details: { causes } },
  };
}

/** A migration is what was asked for: who wants another one deletes it. */
export function validateChangedMigration(): Webhook {
  return ({ object, oldObject }) => {
    if (!object || !oldObject) return ALLOWED;
    const [migration, old] = [object as Migration, oldObject as Migration];
    if (!deepEqual(migration.spec, old.spec))
      return invalidVerdict([restricted("update of Migration object's spec is restricted")]);
    return verdictOf(selectorLabelErrors(migration, old));
  };
}

/** What others find an unfinished migration by stays. */
function selectorLabelErrors(migration: Migration, old: Migration): FieldError[] {
  const { labels } = migration.metadata;
  const before = old.metadata.labels?.[MIGRATION_GUEST_LABEL];
  if (before === undefined || isFinalMigration(migration)) return [];
  if (!labels) return [restricted("selector label can't be removed from an in-flight migration")];
  if (labels[MIGRATION_GUEST_LABEL] === before) return [];
  return [restricted("selector label can't be modified on an in-flight migration")];
}

/** In KubeVirt's words, which scripts look for. */
function restricted(message: string): FieldError {
  return { type: 'FieldValueNotSupported', field: '', message };
}

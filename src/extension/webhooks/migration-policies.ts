import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import {
  equalPolicyErrors,
  migrationPolicyErrors,
  selectorSignature,
  withTextLabels,
} from '../../api/kubevirt/validate-migration-policy.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { configuredErrors } from './configured.ts';
import type { WebhookContext } from './context.ts';
import { ALLOWED, verdictOf, type Webhook } from './review.ts';
import { isWellFormed } from './well-formed.ts';

/** Policies: each with selectors of its own, and nothing in them that is no option. */

/** Makes texts of what YAML took for something else. */
export function mutateMigrationPolicy(): Webhook {
  return ({ object }) => {
    if (!object || !isWellFormed('migrationpolicies', object)) return ALLOWED;
    const policy = object as MigrationPolicy;
    const spec = withTextLabels(policy.spec);
    if (deepEqual(spec, policy.spec)) return ALLOWED;
    return { allowed: true, patch: [{ op: 'replace', path: '/spec', value: spec as never }] };
  };
}

/** Refuses policies that nobody could follow, and two of which nobody could say which one holds. */
export function validateMigrationPolicy(context: WebhookContext): Webhook {
  return async ({ object, oldObject, dryRun }, signal) => {
    if (!object) return ALLOWED;
    const policy = object as MigrationPolicy;
    const old = (oldObject as MigrationPolicy | null | undefined)?.spec;
    const errors = await configuredErrors(context, signal, (configuration) =>
      migrationPolicyErrors(policy.spec, configuration, old),
    );
    // Of two that were made at the same instant, each can still be put right.
    const isNewSelection = !old || selectorSignature(old) !== selectorSignature(policy.spec);
    if (isNewSelection) errors.push(...equalPolicyErrors(policy, await context.rivals.ofPolicy(policy, signal)));
    if (errors.length === 0 && !dryRun) context.rivals.notePolicy(policy);
    return verdictOf(errors);
  };
}

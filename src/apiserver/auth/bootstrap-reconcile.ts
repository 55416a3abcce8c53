import { type KubeObject, parseApiVersion } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { clone } from '../../machinery/clone.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { Registry, Target, WriteContext } from '../registry/contract.ts';
import { AUTO_UPDATE_ANNOTATION, bootstrapObjects } from './bootstrap-policy.ts';
import type { Binding, Role, Subject } from './role-index.ts';
import { compactRules, missingRules } from './rule-coverage.ts';

const PLURALS: Readonly<Record<string, string>> = {
  Role: 'roles',
  ClusterRole: 'clusterroles',
  RoleBinding: 'rolebindings',
  ClusterRoleBinding: 'clusterrolebindings',
};

/**
 * Makes the default roles and bindings, and gives back to those that are there what they have lost (or what a newer
 * version adds). What an administrator has added stays; an object annotated with autoupdate `false` is left alone.
 * The namespace kube-system must exist.
 */
export async function reconcileBootstrapPolicy(
  registry: Pick<Registry, 'definition' | 'read' | 'create' | 'update'>,
  context: WriteContext,
): Promise<void> {
  // All at once, so that they reach the disk together.
  await Promise.all(
    bootstrapObjects().map(async (wanted) => {
      const target = targetOf(registry, wanted);
      const there = registry.read(target);
      if (!there && (await create(registry, context, target, wanted))) return;
      // A look costs less than a write that changes nothing.
      if (there && deepEqual(repaired(there, wanted), there)) return;
      await registry.update(context, target, (current) => repaired(current, wanted));
    }),
  );
}

/** Whether it was made here; false if someone was faster. */
async function create(
  registry: Pick<Registry, 'create'>,
  context: WriteContext,
  target: Target,
  wanted: KubeObject,
): Promise<boolean> {
  try {
    await registry.create(context, target, wanted);
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.reason === 'AlreadyExists') return false;
    throw error;
  }
}

function targetOf(registry: Pick<Registry, 'definition'>, object: KubeObject): Target {
  const { group, version } = parseApiVersion(object.apiVersion);
  const definition = registry.definition(group, version, PLURALS[object.kind] ?? '');
  if (!definition) throw new Error(`${object.kind} is not served`);
  return { definition, namespace: object.metadata.namespace ?? '', name: object.metadata.name ?? '' };
}

/** The object with what it lacks of the wanted one; unchanged (so that nothing is written) if it lacks nothing. */
export function repaired(current: KubeObject, wanted: KubeObject): KubeObject {
  if (current.metadata.annotations?.[AUTO_UPDATE_ANNOTATION] === 'false') return current;
  const object = clone(current);
  object.metadata.labels = { ...wanted.metadata.labels, ...object.metadata.labels };
  object.metadata.annotations = { ...wanted.metadata.annotations, ...object.metadata.annotations };
  if ('roleRef' in wanted) repairBinding(object as Binding, wanted as Binding);
  else repairRole(object as Role, wanted as Role);
  return object;
}

function repairRole(role: Role, wanted: Role): void {
  const selectors = role.aggregationRule?.clusterRoleSelectors ?? [];
  const lost = (wanted.aggregationRule?.clusterRoleSelectors ?? []).filter(
    (selector) => !selectors.some((each) => deepEqual(each, selector)),
  );
  if (lost.length > 0) role.aggregationRule = { clusterRoleSelectors: [...selectors, ...lost] };
  // What a gathering role holds is not its own.
  if (wanted.aggregationRule) return;
  const missing = compactRules(missingRules(role.rules ?? [], wanted.rules ?? []));
  if (missing.length > 0) role.rules = [...(role.rules ?? []), ...missing];
}

/** A role reference cannot be changed; a binding to another role is someone's decision. */
function repairBinding(binding: Binding, wanted: Binding): void {
  if (!deepEqual(binding.roleRef, wanted.roleRef)) return;
  const subjects = binding.subjects ?? [];
  const isThere = (subject: Subject): boolean =>
    subjects.some(
      (each) =>
        each.kind === subject.kind &&
        each.name === subject.name &&
        (each.namespace ?? '') === (subject.namespace ?? ''),
    );
  const missing = (wanted.subjects ?? []).filter((subject) => !isThere(subject));
  if (missing.length > 0) binding.subjects = [...subjects, ...missing];
}

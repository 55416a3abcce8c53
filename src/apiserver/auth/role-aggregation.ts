import { ApiError } from '../../api/status.ts';
import type { Logger } from '../../env/ports.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { Registry } from '../registry/contract.ts';
import { serverContext } from '../registry/server-context.ts';
import type { RbacAuthorizer } from './rbac.ts';
import { RBAC_GROUP, type Role } from './role-index.ts';
import { Wakeup } from './wakeup.ts';

/**
 * Writes into each gathering ClusterRole what it gathers, for people to see: decisions are made without it. Changes
 * that come while a pass is under way are taken up by the next one, so a burst costs two passes.
 */
export class RoleAggregation {
  readonly #registry: Pick<Registry, 'view' | 'definition' | 'update'>;
  readonly #roles: Pick<RbacAuthorizer, 'gatheringRoles' | 'rulesOfRole'>;
  readonly #log: Logger;

  constructor(options: {
    readonly registry: Pick<Registry, 'view' | 'definition' | 'update'>;
    /** Made before this: its index must have seen a change first. */
    readonly roles: Pick<RbacAuthorizer, 'gatheringRoles' | 'rulesOfRole'>;
    readonly log: Logger;
  }) {
    this.#registry = options.registry;
    this.#roles = options.roles;
    this.#log = options.log;
  }

  /** Keeps the roles in step until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const wake = new Wakeup(signal);
    this.#registry.view<Role>(`clusterroles.${RBAC_GROUP}`).onChange(() => wake.ring());
    wake.ring();
    while (await wake.wait()) await this.#pass(signal);
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const definition = this.#registry.definition(RBAC_GROUP, 'v1', 'clusterroles');
    const view = this.#registry.view<Role>(`clusterroles.${RBAC_GROUP}`);
    if (!definition) return;
    for (const name of this.#roles.gatheringRoles()) {
      if (signal.aborted) return;
      const rules = (): readonly unknown[] => this.#roles.rulesOfRole({ kind: 'ClusterRole', name }, '') ?? [];
      if (deepEqual(view.get('', name)?.rules ?? [], rules())) continue;
      try {
        const target = { definition, namespace: '', name };
        await this.#registry.update(serverContext(signal), target, (current) => ({ ...current, rules: rules() }));
      } catch (error) {
        // Deleted meanwhile, or changed too often: either is a change that wakes the next pass.
        this.#log.warn('could not write the rules of a gathering role', { name, error: ApiError.from(error).message });
      }
    }
  }
}

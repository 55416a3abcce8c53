import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import { Controller } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import { migrationPolicies } from '../../kube/kubevirt-resources.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { compareAges, rankedPolicy } from '../../migration/policies/ranked-policy.ts';
import type { ControlContext } from '../context.ts';

/**
 * Tells of policies that do not count, since an older one has the same selectors: a webhook refuses them, but may be asked of two
 * at the same instant, or not at all. Which one counts needs nobody's word (`PolicyIndex`), so that nothing is written but
 * that. Keyed by policies.
 */
export class EqualPolicies implements Service {
  readonly name = 'equal migration policies';
  readonly #recorder: ControlContext['recorder'];
  readonly #policies: Informer<MigrationPolicy>;
  readonly #controller: Controller;

  constructor({ env, informers, recorder, metrics }: ControlContext) {
    this.#recorder = recorder;
    this.#policies = informers.of(migrationPolicies, { selectors: signaturesOf });
    this.#controller = new Controller({
      name: 'equal-migration-policies',
      env,
      reconcile: async (key) => this.#tell(key),
      ...(metrics ? { metrics } : {}),
    });
    this.#policies.onChange(({ type, object, old }) => {
      const [signature] = signaturesOf(object);
      if (type === 'deleted' || signature === undefined || (old && signaturesOf(old)[0] === signature)) return;
      // It may be the older one of those that were told of before.
      for (const each of this.#policies.byIndex('selectors', signature)) this.#controller.enqueue(keyOf(each));
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  #tell(key: string): void {
    const policy = this.#policies.get(key);
    const [signature] = policy ? signaturesOf(policy) : [];
    if (!policy || signature === undefined) return;
    const [oldest = policy] = this.#policies.byIndex('selectors', signature).toSorted(compareAges);
    if (keyOf(oldest) === key) return;
    const name = JSON.stringify(oldest.metadata.name);
    const message = `the policy ${name} has the same selectors, and is older: this one does not count`;
    this.#recorder.event(policy, 'Warning', 'SameSelectors', message);
  }
}

function signaturesOf(policy: MigrationPolicy): readonly string[] {
  const { signature } = rankedPolicy(policy) ?? {};
  return signature === undefined ? [] : [signature];
}

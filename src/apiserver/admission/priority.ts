import type { KubeObject } from '../../api/meta.ts';
import type { AdmissionAttributes, AdmissionPlugin, Registry } from '../registry/contract.ts';
import { isMainResource, refusal } from './attributes.ts';

interface PriorityClass extends KubeObject {
  value?: number;
  globalDefault?: boolean;
  preemptionPolicy?: string;
}

interface Pod extends KubeObject {
  spec?: { priorityClassName?: string; priority?: number | null; preemptionPolicy?: string | null };
}

interface Resolved {
  readonly className: string;
  readonly priority: number;
  readonly preemptionPolicy: string | undefined;
}

const BUCKET = 'priorityclasses.scheduling.k8s.io';
const DEFAULT_POLICY = 'PreemptLowerPriority';

/** The classes that every cluster has, even before their objects are stored. */
const SYSTEM_CLASSES: ReadonlyMap<string, number> = new Map([
  ['system-cluster-critical', 2_000_000_000],
  ['system-node-critical', 2_000_001_000],
]);

/** Turns a pod's priorityClassName into the numbers that schedulers use; nobody else may set those. */
export class Priority implements AdmissionPlugin {
  readonly name = 'Priority';
  readonly #registry: Pick<Registry, 'view'>;

  constructor(registry: Pick<Registry, 'view'>) {
    this.#registry = registry;
  }

  handles(attributes: AdmissionAttributes): boolean {
    if (attributes.operation !== 'CREATE' && attributes.operation !== 'UPDATE') return false;
    return isMainResource(attributes, '', 'pods') || isMainResource(attributes, 'scheduling.k8s.io', 'priorityclasses');
  }

  async mutate(attributes: AdmissionAttributes): Promise<void> {
    if (!isMainResource(attributes, '', 'pods')) return;
    const spec = (attributes.object as Pod | undefined)?.spec;
    if (!spec) return;
    if (attributes.operation === 'UPDATE') keepComputed(spec, attributes.oldObject as Pod | undefined);
    else this.#compute(attributes, spec);
  }

  async validate(attributes: AdmissionAttributes): Promise<void> {
    if (!isMainResource(attributes, 'scheduling.k8s.io', 'priorityclasses')) return;
    const candidate = attributes.object as PriorityClass | undefined;
    if (candidate?.globalDefault !== true) return;
    const current = this.#globalDefault();
    if (!current) return;
    if (attributes.operation === 'UPDATE' && current.metadata.name === candidate.metadata.name) return;
    throw refusal(
      attributes,
      `PriorityClass ${current.metadata.name ?? ''} is already marked as default. Only one default can exist`,
    );
  }

  #compute(attributes: AdmissionAttributes, spec: NonNullable<Pod['spec']>): void {
    const { className, priority, preemptionPolicy } = this.#resolve(attributes, spec.priorityClassName ?? '');
    if (typeof spec.priority === 'number' && spec.priority !== priority) {
      throw refusal(
        attributes,
        `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${priority} from the given PriorityClass name`,
      );
    }
    if (preemptionPolicy !== undefined && spec.preemptionPolicy && spec.preemptionPolicy !== preemptionPolicy) {
      throw refusal(
        attributes,
        `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${preemptionPolicy} from the given PriorityClass name`,
      );
    }
    if (className !== '') spec.priorityClassName = className;
    spec.priority = priority;
    if (preemptionPolicy !== undefined) spec.preemptionPolicy = preemptionPolicy;
  }

  #resolve(attributes: AdmissionAttributes, className: string): Resolved {
    const stored =
      className === '' ? this.#globalDefault() : this.#registry.view<PriorityClass>(BUCKET).get('', className);
    if (stored) {
      return {
        className: stored.metadata.name ?? className,
        priority: stored.value ?? 0,
        preemptionPolicy: stored.preemptionPolicy,
      };
    }
    if (className === '') return { className, priority: 0, preemptionPolicy: DEFAULT_POLICY };
    const system = SYSTEM_CLASSES.get(className);
    if (system === undefined) throw refusal(attributes, `no PriorityClass with name ${className} was found`);
    return { className, priority: system, preemptionPolicy: DEFAULT_POLICY };
  }

  /** Two defaults can only come from a race; the lower one wins, as upstream. */
  #globalDefault(): PriorityClass | undefined {
    let lowest: PriorityClass | undefined;
    for (const each of this.#registry.view<PriorityClass>(BUCKET).list()) {
      if (each.globalDefault === true && (!lowest || (each.value ?? 0) < (lowest.value ?? 0))) lowest = each;
    }
    return lowest;
  }
}

/** Updates that leave the computed fields out keep them. */
function keepComputed(spec: NonNullable<Pod['spec']>, old: Pod | undefined): void {
  if (typeof spec.priority !== 'number' && typeof old?.spec?.priority === 'number') spec.priority = old.spec.priority;
  if (!spec.preemptionPolicy && old?.spec?.preemptionPolicy) spec.preemptionPolicy = old.spec.preemptionPolicy;
}

import { child, type FieldError, forbidden } from '../../api/field-error.ts';
import { featureGateWarnings, isFeatureGateEnabled } from '../../api/kubevirt/feature-gates.ts';
import { configurationWarnings } from '../../api/kubevirt/kept-fields.ts';
import type { KubeVirt, KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { kubeVirts } from '../../kube/kubevirt-resources.ts';
import type { WebhookContext } from './context.ts';
import { ALLOWED, invalidVerdict, verdictOf, type Webhook } from './review.ts';

/** The cluster's configuration: there is one, and gates and fields that do nothing here are worth a word. */
export function validateKubeVirt({ client }: WebhookContext): Webhook {
  return async ({ object, oldObject, operation }, signal) => {
    if (!object) return ALLOWED;
    const { spec, metadata } = object as KubeVirt;
    const configuration = spec.configuration ?? {};
    const old = (oldObject as KubeVirt | null | undefined)?.spec.configuration ?? {};
    if (operation === 'CREATE') {
      const { items } = await client.list(kubeVirts, {}, signal);
      const isSame = (each: KubeVirt): boolean =>
        each.metadata.namespace === metadata.namespace && each.metadata.name === metadata.name;
      // That there is this very one already the API server says itself.
      if (items.length > 0 && !items.some(isSame))
        return invalidVerdict([forbidden('', `KubeVirt is already created: ${describe(items[0])}`)]);
    }
    const path = child('spec', 'configuration');
    return verdictOf(downtimeErrors(old, configuration), [
      ...featureGateWarnings(configuration, path),
      ...configurationWarnings(configuration, path),
    ]);
  };
}

/** How long guests may stand still is part of what is still being tried out. */
function downtimeErrors(old: KubeVirtConfiguration, next: KubeVirtConfiguration): FieldError[] {
  if (old.migrations?.maxDowntimeMs === next.migrations?.maxDowntimeMs) return [];
  const gates = ['MigrationStallDetection', 'MigrationDowntimeTuning'] as const;
  if (gates.some((gate) => isFeatureGateEnabled(gate, next))) return [];
  const detail = `maxDowntimeMs cannot be modified without enabling the ${gates.join(' or ')} feature gate`;
  return [forbidden('spec.configuration.migrations.maxDowntimeMs', detail)];
}

function describe(known: KubeVirt | undefined): string {
  return `${known?.metadata.namespace}/${known?.metadata.name}`;
}

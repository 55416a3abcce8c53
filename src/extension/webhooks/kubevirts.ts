import { child, forbidden } from '../../api/field-error.ts';
import { featureGateWarnings } from '../../api/kubevirt/feature-gates.ts';
import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import { kubeVirts } from '../../kube/kubevirt-resources.ts';
import type { WebhookContext } from './context.ts';
import { ALLOWED, invalidVerdict, verdictOf, type Webhook } from './review.ts';

/** The cluster's configuration: there is one, and gates that do nothing here are worth a word. */
export function validateKubeVirt({ client }: WebhookContext): Webhook {
  return async ({ object, operation }, signal) => {
    if (!object) return ALLOWED;
    const { spec, metadata } = object as KubeVirt;
    if (operation === 'CREATE') {
      const { items } = await client.list(kubeVirts, {}, signal);
      const isSame = (each: KubeVirt): boolean =>
        each.metadata.namespace === metadata.namespace && each.metadata.name === metadata.name;
      // That there is this very one already the API server says itself.
      if (items.length > 0 && !items.some(isSame))
        return invalidVerdict([forbidden('', `KubeVirt is already created: ${describe(items[0])}`)]);
    }
    return verdictOf([], featureGateWarnings(spec.configuration ?? {}, child('spec', 'configuration')));
  };
}

function describe(known: KubeVirt | undefined): string {
  return `${known?.metadata.namespace}/${known?.metadata.name}`;
}

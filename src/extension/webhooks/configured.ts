import type { FieldError } from '../../api/field-error.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import { kubeVirts } from '../../kube/kubevirt-resources.ts';
import type { WebhookContext } from './context.ts';

/**
 * What is wrong by the cluster's configuration. Whatever that of a moment ago refuses is held against the server's, too: whoever has
 * just opened a gate may use it. Where the server does not answer, the first word counts.
 */
export async function configuredErrors(
  { client, configuration }: Pick<WebhookContext, 'client' | 'configuration'>,
  signal: AbortSignal,
  errorsBy: (configuration: KubeVirtConfiguration) => FieldError[],
): Promise<FieldError[]> {
  const errors = errorsBy(configuration());
  if (errors.length === 0) return errors;
  const found = await client.list(kubeVirts, {}, signal).catch(() => undefined);
  return found ? errorsBy(found.items[0]?.spec.configuration ?? {}) : errors;
}

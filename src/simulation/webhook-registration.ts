import type { KubeObject } from '../api/meta.ts';
import { registrations } from '../extension/registrations.ts';
import { type WebhookEndpoint, WEBHOOKS } from '../extension/webhooks/endpoints.ts';
import { restrictNodes } from '../extension/webhooks/node-restriction.ts';

/**
 * What API servers are told of webhooks. There are those for nodes, and for evictions. What the others do is done by whoever
 * creates something (`actions/`), since they fail closed and everything would stand still.
 */

/** The one that judges what nodes write. */
export const NODE_WEBHOOK = nodeWebhook();

interface ValidatingConfiguration extends KubeObject {
  webhooks?: { readonly name: string; readonly rules: readonly { readonly resources: readonly string[] }[] }[];
}

export function webhookRegistration(hasEvictions: boolean): KubeObject {
  const all = registrations({ reach: { kind: 'address', host: 'webhooks', port: 443 }, authoritiesPem: 'model' });
  const found: ValidatingConfiguration | undefined = all.find(({ kind }) => kind === 'ValidatingWebhookConfiguration');
  if (!found) throw new Error('nothing is validated');
  const webhooks = (found.webhooks ?? []).filter(
    ({ name, rules }) =>
      name === NODE_WEBHOOK.name ||
      (hasEvictions && rules.some(({ resources }) => resources.includes('pods/eviction'))),
  );
  return { ...found, webhooks };
}

function nodeWebhook(): WebhookEndpoint {
  const found = WEBHOOKS.find(({ answer }) => answer === restrictNodes);
  if (!found) throw new Error('nobody judges what nodes write');
  return found;
}

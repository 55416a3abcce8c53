import type { KubeObject } from '../../../api/meta.ts';
import { everything, type LabelSelectorObject, type Selector, selectorFrom } from '../../../machinery/selectors.ts';

/** Webhook configurations as stored, and what is made of them once per change. */

export interface WebhookRule {
  readonly apiGroups?: readonly string[];
  readonly apiVersions?: readonly string[];
  readonly resources?: readonly string[];
  readonly operations?: readonly string[];
  readonly scope?: string;
}

export interface ServiceReference {
  readonly namespace: string;
  readonly name: string;
  readonly path?: string;
  readonly port?: number;
}

export interface WebhookClientConfig {
  readonly url?: string;
  readonly service?: ServiceReference;
  /** PEM, in base64 as the wire has it. */
  readonly caBundle?: string;
}

export interface MatchCondition {
  readonly name: string;
  readonly expression: string;
}

/** One webhook of a mutating or validating configuration. */
export interface Webhook {
  readonly name: string;
  readonly clientConfig: WebhookClientConfig;
  readonly rules?: readonly WebhookRule[];
  readonly failurePolicy?: string;
  readonly matchPolicy?: string;
  readonly namespaceSelector?: LabelSelectorObject;
  readonly objectSelector?: LabelSelectorObject;
  readonly matchConditions?: readonly MatchCondition[];
  readonly sideEffects?: string;
  readonly timeoutSeconds?: number;
  readonly admissionReviewVersions?: readonly string[];
  readonly reinvocationPolicy?: string;
}

/** A MutatingWebhookConfiguration or ValidatingWebhookConfiguration. */
export interface WebhookConfiguration extends KubeObject {
  webhooks?: readonly Webhook[];
}

/** A webhook with everything parsed that requests are matched against. */
export interface CompiledWebhook {
  readonly webhook: Webhook;
  /** Unique among all webhooks: neither configurations nor their webhooks repeat it. */
  readonly id: string;
  readonly namespaceSelector: ParsedSelector;
  readonly objectSelector: ParsedSelector;
  readonly failsOpen: boolean;
  readonly timeoutMs: number;
}

/** A selector, or why there is none: a broken one fails the requests that it would decide on, and no others. */
export type ParsedSelector = { readonly selector: Selector } | { readonly error: string };

/** What a webhook is given when its configuration does not say. */
const TIMEOUT_SECONDS_DEFAULT = 10;

/** Compiles the webhooks of a configuration, in their order. */
export function compileConfiguration(configuration: WebhookConfiguration): CompiledWebhook[] {
  return (configuration.webhooks ?? []).map((webhook, index) => ({
    webhook,
    id: `${configuration.metadata.name ?? ''}/${index}`,
    namespaceSelector: parseSelector(webhook.namespaceSelector),
    objectSelector: parseSelector(webhook.objectSelector),
    failsOpen: webhook.failurePolicy === 'Ignore',
    timeoutMs: (webhook.timeoutSeconds ?? TIMEOUT_SECONDS_DEFAULT) * 1000,
  }));
}

function parseSelector(object: LabelSelectorObject | undefined): ParsedSelector {
  if (!object) return { selector: everything };
  try {
    return { selector: selectorFrom(object) };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

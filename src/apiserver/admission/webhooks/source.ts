import { bucketOf, type ResourceDefinition } from '../../../api/resource.ts';
import type { AdmissionAttributes, Registry, View } from '../../registry/contract.ts';
import { subresourceOf } from '../attributes.ts';
import { type CompiledWebhook, compileConfiguration, type WebhookConfiguration } from './configuration.ts';
import { type RuleSubject, ruleMatches } from './rules.ts';

/** A webhook that a request's resource and operation call for, and the version in which it wants to see the object. */
export interface Invocation {
  readonly compiled: CompiledWebhook;
  readonly definition: ResourceDefinition;
}

const NONE: readonly Invocation[] = [];
const GROUP = 'admissionregistration.k8s.io';

/** Kinds that no webhook may stand in the way of, or nobody could remove a broken one. */
const EXEMPT: ReadonlySet<string> = new Set([
  'validatingwebhookconfigurations',
  'mutatingwebhookconfigurations',
  'validatingadmissionpolicies',
  'validatingadmissionpolicybindings',
  'mutatingadmissionpolicies',
  'mutatingadmissionpolicybindings',
]);

/**
 * The webhooks of one kind of configuration. Rules depend only on resource, version, subresource and operation, so what
 * they select is worked out once for each such combination and kept until a configuration or a definition changes:
 * a request that no webhook wants costs one lookup.
 */
export class WebhookSource {
  readonly #registry: Pick<Registry, 'view' | 'definitions' | 'onDefinitionsChange'>;
  readonly #bucket: string;
  #view: View<WebhookConfiguration> | undefined;
  #webhooks: readonly CompiledWebhook[] | undefined;
  readonly #compiled = new WeakMap<WebhookConfiguration, CompiledWebhook[]>();
  readonly #invocations = new Map<string, readonly Invocation[]>();

  constructor(
    registry: Pick<Registry, 'view' | 'definitions' | 'onDefinitionsChange'>,
    plural: 'mutatingwebhookconfigurations' | 'validatingwebhookconfigurations',
  ) {
    this.#registry = registry;
    this.#bucket = `${plural}.${GROUP}`;
  }

  /** The webhooks whose rules match, ordered by the names of their configurations, then as they are listed there. */
  invocationsFor(attributes: AdmissionAttributes): readonly Invocation[] {
    const webhooks = this.#allWebhooks();
    if (webhooks.length === 0) return NONE;
    const { definition } = attributes.target;
    if (definition.group === GROUP && EXEMPT.has(definition.plural)) return NONE;
    const subject: RuleSubject = {
      definition,
      subresource: subresourceOf(attributes),
      operation: attributes.operation,
    };
    const key = `${subject.operation} ${definition.group}/${definition.version}/${definition.plural}/${subject.subresource}`;
    let invocations = this.#invocations.get(key);
    if (!invocations) this.#invocations.set(key, (invocations = this.#select(webhooks, subject)));
    return invocations;
  }

  #allWebhooks(): readonly CompiledWebhook[] {
    if (this.#webhooks) return this.#webhooks;
    const view = this.#openView();
    this.#webhooks = view.list().flatMap((configuration) => this.#compile(configuration));
    return this.#webhooks;
  }

  #openView(): View<WebhookConfiguration> {
    if (this.#view) return this.#view;
    this.#view = this.#registry.view<WebhookConfiguration>(this.#bucket);
    this.#view.onChange(() => {
      this.#webhooks = undefined;
      this.#invocations.clear();
    });
    this.#registry.onDefinitionsChange(() => this.#invocations.clear());
    return this.#view;
  }

  /** Configurations that did not change keep what was compiled of them: their match conditions are dear. */
  #compile(configuration: WebhookConfiguration): CompiledWebhook[] {
    let compiled = this.#compiled.get(configuration);
    if (!compiled) this.#compiled.set(configuration, (compiled = compileConfiguration(configuration)));
    return compiled;
  }

  #select(webhooks: readonly CompiledWebhook[], subject: RuleSubject): Invocation[] {
    const equivalents = this.#equivalents(subject);
    return webhooks.flatMap((compiled) => {
      const definition = chooseDefinition(compiled, subject, equivalents);
      return definition ? [{ compiled, definition }] : [];
    });
  }

  /** Other served versions of the same stored kind that have this subresource too. */
  #equivalents({ definition, subresource }: RuleSubject): ResourceDefinition[] {
    const bucket = bucketOf(definition);
    return this.#registry
      .definitions()
      .filter((each) => !isSame(each, definition) && bucketOf(each) === bucket && hasSubresource(each, subresource));
  }
}

function chooseDefinition(
  { webhook }: CompiledWebhook,
  subject: RuleSubject,
  equivalents: readonly ResourceDefinition[],
): ResourceDefinition | undefined {
  const rules = webhook.rules ?? [];
  if (rules.some((rule) => ruleMatches(rule, subject))) return subject.definition;
  if (webhook.matchPolicy === 'Exact') return undefined;
  // Earlier rules decide which of several versions the webhook is shown.
  for (const rule of rules) {
    const equivalent = equivalents.find((definition) => ruleMatches(rule, { ...subject, definition }));
    if (equivalent) return equivalent;
  }
  return undefined;
}

function isSame(a: ResourceDefinition, b: ResourceDefinition): boolean {
  return a.group === b.group && a.version === b.version && a.plural === b.plural;
}

function hasSubresource({ subresources }: ResourceDefinition, subresource: string): boolean {
  return subresource === '' || (subresources ?? []).some((each) => each.name === subresource);
}

import { apiVersionOf, type KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { ApiError } from '../../api/status.ts';
import type { Logger } from '../../env/ports.ts';
import { CUSTOM_PRIORITY, groupPriority } from '../discovery/priority.ts';
import type { View } from '../registry/contract.ts';
import { type ApiService, apiServiceName } from './api-service.ts';

/** What the local APIServices need from the rest of the server. */
export interface LocalServicePorts {
  definitions(): readonly ResourceDefinition[];
  onDefinitionsChange(listener: () => void): void;
  /** Of `apiservices.apiregistration.k8s.io`. */
  readonly apiServices: View;
  create(apiService: KubeObject): Promise<void>;
  delete(name: string): Promise<void>;
}

/** Marks the ones that the server made and may remove: `onstart` for built-in groups, `true` for custom ones. */
const AUTO_LABEL = 'kube-aggregator.kubernetes.io/automanaged';
const OWN_GROUP = 'apiregistration.k8s.io';
const BUILTIN_VERSION_PRIORITY = 15;
const CUSTOM_VERSION_PRIORITY = 100;

/**
 * Keeps one APIService per group and version that is served here, so that `kubectl get apiservices` lists them all as
 * Local. Those that somebody else made under the same name are left alone: they send the group elsewhere.
 */
export class LocalApiServices {
  readonly #ports: LocalServicePorts;
  readonly #log: Logger;
  #isDirty = true;
  #wake: () => void = () => undefined;

  constructor(ports: LocalServicePorts, log: Logger) {
    this.#ports = ports;
    this.#log = log;
    const changed = (): void => {
      this.#isDirty = true;
      this.#wake();
    };
    ports.onDefinitionsChange(changed);
    ports.apiServices.onChange((apiService) => {
      // One that is gone may be one of ours.
      if (!apiService) changed();
    });
  }

  /** Creates and removes as definitions come and go, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake(), { once: true });
    while (!signal.aborted) {
      if (this.#isDirty) {
        this.#isDirty = false;
        await this.#sync(signal);
        continue;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async #sync(signal: AbortSignal): Promise<void> {
    const wanted = localApiServices(this.#ports.definitions());
    const existing = new Set(this.#ports.apiServices.list().map((each) => each.metadata.name ?? ''));
    for (const [name, apiService] of wanted) {
      if (!existing.has(name) && !signal.aborted) await this.#attempt(name, () => this.#ports.create(apiService));
    }
    for (const each of this.#ports.apiServices.list() as readonly ApiService[]) {
      const name = each.metadata.name ?? '';
      const isOurs = each.metadata.labels?.[AUTO_LABEL] !== undefined && each.spec?.service === undefined;
      if (isOurs && !wanted.has(name) && !signal.aborted) await this.#attempt(name, () => this.#ports.delete(name));
    }
  }

  async #attempt(name: string, write: () => Promise<void>): Promise<void> {
    try {
      await write();
    } catch (error) {
      // Somebody was quicker: what is wanted is so already.
      if (error instanceof ApiError && (error.code === 409 || error.code === 404)) return;
      // They only inform; the next change tries again.
      this.#log.warn('local APIService not written', { apiService: name, error: String(error) });
    }
  }
}

/** The APIServices of what is served here, by name. */
export function localApiServices(definitions: readonly ResourceDefinition[]): Map<string, KubeObject> {
  const services = new Map<string, KubeObject>();
  for (const { group, version, custom } of definitions) {
    // The aggregation layer answers for itself.
    if (group === OWN_GROUP) continue;
    const name = apiServiceName(group, version);
    if (services.has(name)) continue;
    services.set(name, {
      apiVersion: apiVersionOf(OWN_GROUP, 'v1'),
      kind: 'APIService',
      metadata: { name, labels: { [AUTO_LABEL]: custom ? 'true' : 'onstart' } },
      spec: {
        ...(group === '' ? {} : { group }),
        version,
        groupPriorityMinimum: custom ? CUSTOM_PRIORITY : groupPriority(group),
        versionPriority: custom ? CUSTOM_VERSION_PRIORITY : BUILTIN_VERSION_PRIORITY,
      },
    });
  }
  return services;
}

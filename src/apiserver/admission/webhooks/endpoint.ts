import type { KubeObject } from '../../../api/meta.ts';
import type { Random } from '../../../env/ports.ts';
import type { Registry } from '../../registry/contract.ts';
import type { ServiceReference, WebhookClientConfig } from './configuration.ts';

/** Where a webhook is, and how messages name it. */
export interface Endpoint {
  /** Where to connect to. */
  readonly url: string;
  /** The URL as the configuration means it; a service's has its name, not an address. */
  readonly shownUrl: string;
  readonly serverName?: string;
}

interface Service extends KubeObject {
  spec?: { type?: string; ports?: readonly { name?: string; port?: number }[] };
}

interface Subset {
  readonly addresses?: readonly { readonly ip: string }[];
  readonly ports?: readonly { readonly name?: string; readonly port: number }[];
}

interface Endpoints extends KubeObject {
  subsets?: readonly Subset[];
}

const PORT_DEFAULT = 443;

/** Why a webhook's address could not be found; the message is upstream's. */
export class EndpointError extends Error {
  /** The URL that could not be reached; empty where the configuration names none. */
  readonly shownUrl: string;

  constructor(message: string, shownUrl = '') {
    super(message);
    this.name = 'EndpointError';
    this.shownUrl = shownUrl;
  }
}

/** Finds a webhook. A service is resolved through its Endpoints, since no cluster IP is routed here. Throws an EndpointError. */
export function findEndpoint(
  { url, service }: WebhookClientConfig,
  timeoutMs: number,
  registry: Pick<Registry, 'view'>,
  random: Random,
): Endpoint {
  const query = `?timeout=${Math.ceil(timeoutMs / 1000)}s`;
  if (service) {
    const port = service.port ?? PORT_DEFAULT;
    const path = pathOf(service.path ?? '');
    const serverName = `${service.name}.${service.namespace}.svc`;
    const shownUrl = `https://${serverName}:${port}${path}${query}`;
    return {
      url: `https://${resolve(service, port, shownUrl, registry, random)}${path}${query}`,
      shownUrl,
      serverName,
    };
  }
  if (!url) throw new EndpointError('webhook configuration must have either service or URL');
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== 'https:')
    throw new EndpointError(`Unparsable URL: ${JSON.stringify(url)} is not an https URL`);
  const full = `https://${parsed.host}${parsed.pathname}${query}`;
  return { url: full, shownUrl: full };
}

function pathOf(path: string): string {
  return path.startsWith('/') ? path : `/${path}`;
}

/** `host:port` of one ready address, chosen by chance so that replicas share the load. */
function resolve(
  { namespace, name }: ServiceReference,
  port: number,
  shownUrl: string,
  registry: Pick<Registry, 'view'>,
  random: Random,
): string {
  const service = registry.view<Service>('services').get(namespace, name);
  if (!service) throw new EndpointError(`service "${name}" not found`, shownUrl);
  if (service.spec?.type === 'ExternalName')
    throw new EndpointError('unsupported service type "ExternalName"', shownUrl);
  const servicePort = service.spec?.ports?.find((each) => each.port === port);
  if (!servicePort) throw new EndpointError(`no service port ${port} found for service "${name}"`, shownUrl);
  const candidates = (registry.view<Endpoints>('endpoints').get(namespace, name)?.subsets ?? []).flatMap((subset) =>
    addressesOf(subset, servicePort.name ?? ''),
  );
  const chosen = candidates[Math.floor(random.number() * candidates.length)];
  if (chosen === undefined) throw new EndpointError(`no endpoints available for service "${name}"`, shownUrl);
  return chosen;
}

function addressesOf({ addresses = [], ports = [] }: Subset, portName: string): string[] {
  const port = ports.find((each) => (each.name ?? '') === portName)?.port;
  if (port === undefined) return [];
  return addresses.map(({ ip }) => (ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`));
}

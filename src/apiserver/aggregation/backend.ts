import type { Duplex } from 'node:stream';
import type { KubeObject } from '../../api/meta.ts';
import type { Random } from '../../env/ports.ts';
import type { View } from '../registry/contract.ts';
import type { ApiService, Availability } from './api-service.ts';

/** The server behind an APIService: where it is, and how it is spoken to. */

export interface BackendAddress {
  readonly host: string;
  readonly port: number;
}

export interface Backend {
  /** At least one, in the order to try them in. */
  readonly addresses: readonly BackendAddress[];
  /** The name that its certificate must bear. */
  readonly serverName: string;
  /** PEM of the authorities to trust instead of the system's. */
  readonly caBundle?: string;
  /** Whether any certificate will do. */
  readonly isInsecure: boolean;
}

export interface BackendRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: { readonly [name: string]: string | readonly string[] };
  readonly body?: Uint8Array;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
  /** How long the headers of the answer may take; the body may take for ever. */
  readonly timeoutMs: number;
}

export interface BackendResponse {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | readonly string[] };
  readonly body: AsyncIterable<Uint8Array>;
}

/** What a backend says to an upgrade: its side of the connection, or a plain answer. */
export type UpgradeAnswer =
  | {
      readonly kind: 'upgraded';
      readonly headers: { readonly [name: string]: string | readonly string[] };
      readonly socket: Duplex;
      /** What the backend has already sent. */
      readonly head: Uint8Array;
    }
  | { readonly kind: 'refused'; readonly response: BackendResponse };

/** How backends are reached. A port: production speaks HTTPS, the simulation calls its servers directly. */
export interface BackendTransport {
  /** Rejects with a BackendError when no answer came. */
  send(backend: Backend, request: BackendRequest): Promise<BackendResponse>;
  upgrade(backend: Backend, request: BackendRequest): Promise<UpgradeAnswer>;
}

/** Why a backend gave no answer. */
export class BackendError extends Error {
  readonly isTimeout: boolean;

  constructor(message: string, options: { readonly isTimeout?: boolean; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'BackendError';
    this.isTimeout = options.isTimeout ?? false;
  }
}

/** Where services and their endpoints are looked up. */
export interface ServiceViews {
  readonly services: View;
  readonly endpoints: View;
}

interface Service extends KubeObject {
  spec?: { type?: string; externalName?: string; ports?: { name?: string; port?: number }[] };
}

interface Endpoints extends KubeObject {
  subsets?: { addresses?: { ip?: string }[]; ports?: { name?: string; port?: number }[] }[];
}

const DEFAULT_PORT = 443;

/** Finds the backend of an APIService, or says why there is none. */
export function resolveBackend(apiService: ApiService, views: ServiceViews, random: Random): Backend | Availability {
  const { service = {}, caBundle, insecureSkipTLSVerify } = apiService.spec ?? {};
  const { namespace = '', name = '', port = DEFAULT_PORT } = service;
  const found = views.services.get(namespace, name) as Service | undefined;
  const where = `service/${name} in ${JSON.stringify(namespace)}`;
  if (!found) return missing('ServiceNotFound', `${where} is not present`);
  const shared = {
    serverName: `${name}.${namespace}.svc`,
    ...(caBundle ? { caBundle: Buffer.from(caBundle, 'base64').toString() } : {}),
    isInsecure: insecureSkipTLSVerify === true,
  };
  if (found.spec?.type === 'ExternalName') {
    return { ...shared, addresses: [{ host: found.spec.externalName ?? '', port }] };
  }
  const servicePort = found.spec?.ports?.find((each) => each.port === port);
  if (!servicePort) return missing('ServicePortError', `${where} is not listening on port ${port}`);
  const endpoints = views.endpoints.get(namespace, name) as Endpoints | undefined;
  if (!endpoints) return missing('EndpointsNotFound', `cannot find endpoints for ${where}`);
  const addresses = addressesOf(endpoints, servicePort.name ?? '');
  if (addresses.length === 0) {
    const portName = JSON.stringify(servicePort.name ?? '');
    return missing('MissingEndpoints', `endpoints for ${where} have no addresses with port name ${portName}`);
  }
  return { ...shared, addresses: rotate(addresses, Math.floor(random.number() * addresses.length)) };
}

/** Whether the outcome of `resolveBackend` is a backend. */
export function isBackend(outcome: Backend | Availability): outcome is Backend {
  return 'addresses' in outcome;
}

function missing(reason: string, message: string): Availability {
  return { status: 'False', reason, message };
}

function addressesOf(endpoints: Endpoints, portName: string): BackendAddress[] {
  return (endpoints.subsets ?? []).flatMap((subset) => {
    const port = subset.ports?.find((each) => (each.name ?? '') === portName)?.port;
    if (port === undefined) return [];
    return (subset.addresses ?? []).flatMap((address) => (address.ip ? [{ host: address.ip, port }] : []));
  });
}

/** Each request starts with another one, so that all get their share. */
function rotate<T>(items: readonly T[], by: number): T[] {
  return [...items.slice(by), ...items.slice(0, by)];
}

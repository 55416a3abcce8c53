import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ApiError, type Status } from '../api/status.ts';
import type { Env } from '../env/ports.ts';
import { Client } from '../kube/client.ts';
import type { ClusterAccess } from '../kube/cluster-access.ts';
import { HttpsTransport } from '../kube/https-transport.ts';
import { loadKubeconfig } from '../kube/kubeconfig.ts';
import type { KubeconfigOverrides } from '../kube/kubeconfig-overrides.ts';
import { KubeconfigError, type KubeconfigPorts } from '../kube/kubeconfig-ports.ts';
import { systemKubeconfigPorts } from '../kube/kubeconfig-system.ts';
import type { Transport, TransportResponse } from '../kube/transport.ts';
import { apiFailure } from './api-failure.ts';
import { defaultDataDirectory } from './data-directory.ts';
import { UserError } from './failure.ts';
import { isKubectlPlugin } from './invocation.ts';
import { HurriedTransport } from './request-timeout.ts';

/** How commands find and ask the cluster that they are for. */

/** What kubectl's options say goes before what the kubeconfig says. */
export interface ClusterOptions extends KubeconfigOverrides {
  /** The file to use; otherwise that of the data directory, those of `KUBECONFIG`, or what is in the usual places. */
  readonly kubeconfig?: string;
  /** The data directory of the cluster, if it is one of this machine. */
  readonly dataDir?: string;
  /** The context of it; otherwise the current one. */
  readonly context?: string;
  /** The namespace to work in; otherwise the one that the kubeconfig names. */
  readonly namespace?: string;
  /** How long one request may wait for its answer, in milliseconds; 0 and undefined leave that to the transport. */
  readonly requestTimeout?: number;
}

export interface ClusterConnection {
  readonly access: ClusterAccess;
  readonly transport: Transport;
  readonly client: Client;
  readonly namespace: string;
}

/** Runs something on the cluster, and puts what goes wrong into a sentence that says what to do about it. */
export async function withCluster<T>(
  options: ClusterOptions,
  env: Env,
  run: (connection: ClusterConnection) => Promise<T>,
): Promise<T> {
  const access = await accessOf(options, env);
  const transport = transportOf(access, options, env);
  const client = new Client(transport, 'godwit');
  try {
    return await run({ access, transport, client, namespace: options.namespace ?? access.namespace });
  } catch (error) {
    throw apiFailure(error, access.server);
  } finally {
    transport.close();
  }
}

function transportOf(access: ClusterAccess, { requestTimeout = 0 }: ClusterOptions, env: Env): Transport {
  const transport = new HttpsTransport({ access, env });
  return requestTimeout > 0 ? new HurriedTransport(transport, env.clock, requestTimeout) : transport;
}

async function accessOf(options: ClusterOptions, env: Env): Promise<ClusterAccess> {
  const { context } = options;
  const ports = systemKubeconfigPorts(env.clock, process.env);
  const path = kubeconfigOf(options, ports);
  try {
    return await loadKubeconfig({
      ports,
      overrides: options,
      ...(path === undefined ? {} : { path }),
      ...(context === undefined ? {} : { context }),
    });
  } catch (error) {
    if (error instanceof KubeconfigError) throw new UserError(error.message, { cause: error });
    throw error;
  }
}

/**
 * The one file to read; undefined where kubectl's rules say which ones. As a plugin of kubectl it talks to what kubectl
 * talks to, and by itself to the cluster of this machine.
 */
function kubeconfigOf(
  { kubeconfig, dataDir, server }: ClusterOptions,
  { environment, homeDirectory }: KubeconfigPorts,
): string | undefined {
  const named = kubeconfig ?? (dataDir === undefined ? undefined : join(dataDir, 'kubeconfig'));
  if (named !== undefined || environment['KUBECONFIG']) return named;
  const own = join(defaultDataDirectory(), 'kubeconfig');
  const usual = join(homeDirectory, '.kube', 'config');
  const places = isKubectlPlugin() ? [usual, own] : [own, usual];
  const found = places.find((each) => existsSync(each));
  if (found === undefined && server === undefined && !environment['KUBERNETES_SERVICE_HOST'])
    throw new UserError(
      `there is no kubeconfig at ${places.join(' or ')}; start a cluster with 'godwit up', or name another with --kubeconfig or KUBECONFIG`,
    );
  return found;
}

/** A request that is no read or write of an object. The answer's body must be read or returned. Rejects with ApiError. */
export async function ask(
  { transport }: Pick<ClusterConnection, 'transport'>,
  method: 'GET' | 'PUT',
  path: string,
  options: { readonly body?: object; readonly signal: AbortSignal },
): Promise<TransportResponse> {
  const { body, signal } = options;
  const headers = { 'user-agent': 'godwit', accept: '*/*', ...(body ? { 'content-type': 'application/json' } : {}) };
  const sent = body ? { body: JSON.stringify(body) } : {};
  const response = await transport.send({ method, path, headers, signal, ...sent });
  if (response.status >= 200 && response.status < 300) return response;
  throw statusError(response.status, await wholeText(response.body));
}

export async function wholeText(body: AsyncIterable<string>): Promise<string> {
  let text = '';
  for await (const piece of body) text += piece;
  return text;
}

/** As much of an answer that nobody understands as helps to recognise it. */
const EXCERPT_LENGTH = 200;

/** The error in an answer. */
export function statusError(code: number, text: string): ApiError {
  try {
    const status = JSON.parse(text) as Partial<Status> | null;
    if (status?.kind === 'Status') return ApiError.fromStatus({ ...status, code: status.code ?? code });
  } catch {
    // Not every proxy on the way speaks Status.
  }
  return new ApiError(code, 'Unknown', `the server answered ${code}: ${text.slice(0, EXCERPT_LENGTH)}`);
}

/** The path of something that can be done with a machine or a guest. */
export function subresourcePath(
  namespace: string,
  resource: 'virtualmachines' | 'virtualmachineinstances',
  name: string,
  subresource: string,
): string {
  const object = `namespaces/${encodeURIComponent(namespace)}/${resource}/${encodeURIComponent(name)}`;
  return `/apis/subresources.kubevirt.io/v1/${object}/${subresource}`;
}

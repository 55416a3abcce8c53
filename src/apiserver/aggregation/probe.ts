import { errorMessage } from '../../api/error-message.ts';
import type { Env } from '../../env/ports.ts';
import type { RemoteGroupVersion } from '../discovery/groups.ts';
import type { ApiService, Availability } from './api-service.ts';
import { type Backend, type BackendTransport, isBackend, resolveBackend, type ServiceViews } from './backend.ts';
import { userHeaders } from './proxy-headers.ts';
import { fetchRemoteDocuments, type RemoteAnswer } from './remote-discovery.ts';

/** What a look at a backend found. */
export interface Finding {
  readonly availability: Availability;
  /** Undefined when the backend gave no answer; what it said last still stands then, but stale. */
  readonly remote?: RemoteGroupVersion;
}

/** Quick enough to notice a hung backend before many requests hang with it. */
const PROBE_TIMEOUT_MS = 5_000;
/** Larger than any discovery document or OpenAPI index. */
const PROBE_BYTES_MAX = 8 * 1024 * 1024;
/** What groups and versions get that name no priority. */
const DEFAULT_GROUP_PRIORITY = 1_000;
const DEFAULT_VERSION_PRIORITY = 15;

/** The aggregator asks in its own name; this group may read everything everywhere. */
const AGGREGATOR = { username: 'system:kube-aggregator', groups: ['system:masters'] };

/** Looks whether the backend of an APIService is there, and what it serves. Never rejects. */
export async function probe(
  env: Env,
  transport: BackendTransport,
  views: ServiceViews,
  apiService: ApiService,
  signal: AbortSignal,
): Promise<Finding> {
  const backend = resolveBackend(apiService, views, env.random);
  if (!isBackend(backend)) return { availability: backend };
  const { group = '', version = '', groupPriorityMinimum, versionPriority } = apiService.spec ?? {};
  try {
    const documents = await fetchRemoteDocuments(
      (path, accept) => get(env, transport, backend, path, accept, signal),
      group,
      version,
    );
    return {
      availability: { status: 'True', reason: 'Passed', message: 'all checks passed' },
      remote: {
        ...documents,
        group,
        version,
        groupPriority: groupPriorityMinimum ?? DEFAULT_GROUP_PRIORITY,
        versionPriority: versionPriority ?? DEFAULT_VERSION_PRIORITY,
        freshness: 'Current',
      },
    };
  } catch (error) {
    const { host, port } = backend.addresses[0] ?? {};
    const cause = errorMessage(error);
    const message = `failing or missing response from https://${host}:${port}/apis/${group}/${version}: ${cause}`;
    return { availability: { status: 'False', reason: 'FailedDiscoveryCheck', message } };
  }
}

async function get(
  env: Env,
  transport: BackendTransport,
  backend: Backend,
  path: string,
  accept: string,
  signal: AbortSignal,
): Promise<RemoteAnswer> {
  // The transport bounds the headers; a backend that dribbles its body is as useless as one that sends nothing.
  const late = new AbortController();
  const timer = env.clock.setTimer(() => late.abort(), PROBE_TIMEOUT_MS);
  try {
    const response = await transport.send(backend, {
      method: 'GET',
      path,
      headers: { accept, ...userHeaders(AGGREGATOR) },
      signal: AbortSignal.any([signal, late.signal]),
      timeoutMs: PROBE_TIMEOUT_MS,
    });
    const contentType = response.headers['content-type'];
    return {
      status: response.status,
      contentType: typeof contentType === 'string' ? contentType : '',
      text: await textOf(response.body),
    };
  } finally {
    timer.cancel();
  }
}

async function textOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > PROBE_BYTES_MAX) throw new Error(`the answer is larger than ${PROBE_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length).toString();
}

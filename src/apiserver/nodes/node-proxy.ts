import { serviceUnavailable } from '../../api/status.ts';
import { BackendError, type BackendResponse } from '../aggregation/backend.ts';
import { responseHeaders } from '../aggregation/proxy-headers.ts';
import type { Call } from '../endpoints/context.ts';
import type { ApiResponse } from '../http/message.ts';
import { nodeBackend, unreachable } from './node-backend.ts';
import type { NodeConnection } from './pod-log.ts';

/** `nodes/{name}/proxy/…`: what a node serves itself, for those who may do anything to nodes. */

const ANSWER_TIMEOUT_MS = 60_000;

/** What of a request is about its content; who asks is the API server, and nothing else is to be believed. */
const HEADERS = ['accept', 'content-type', 'user-agent'];

/** `/api/v1/nodes/{name}/proxy` has so many segments, the empty one before the first slash included. */
const PREFIX_SEGMENTS = 6;

/** Passes a request on to the node, and its answer back. */
export async function proxyToNode(
  { registry, transport, authority }: NodeConnection,
  { request, target }: Call,
): Promise<ApiResponse> {
  const backend = nodeBackend(registry, target.name, authority);
  const path = `/${request.path.split('/').slice(PREFIX_SEGMENTS).join('/')}`;
  const query = request.query.toString();
  const headers: Record<string, string> = {};
  for (const name of HEADERS) if (request.headers[name] !== undefined) headers[name] = request.headers[name];
  const body = request.method === 'GET' || request.method === 'HEAD' ? undefined : await request.body();
  let response: BackendResponse;
  try {
    response = await transport.send(backend, {
      method: request.method,
      path: query === '' ? path : `${path}?${query}`,
      headers,
      signal: request.signal,
      timeoutMs: ANSWER_TIMEOUT_MS,
      ...(body && body.length > 0 ? { body } : {}),
    });
  } catch (error) {
    if (!(error instanceof BackendError)) throw error;
    throw serviceUnavailable(`error trying to reach service: ${unreachable(backend, error)}`, error);
  }
  return { status: response.status, headers: responseHeaders(response.headers), body: response.body };
}

import { type FieldError, forbidden, invalid } from '../../api/field-error.ts';
import { objectAt, objectsAt, textAt } from '../../api/kinds/core/fields.ts';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError, badRequest, internalError, invalidObject, notFound } from '../../api/status.ts';
import { BackendError, type BackendResponse, type BackendTransport } from '../aggregation/backend.ts';
import type { Call } from '../endpoints/context.ts';
import type { ApiResponse } from '../http/message.ts';
import { isTrue } from '../http/request-info.ts';
import type { Registry } from '../registry/contract.ts';
import { hostOf, nodeBackend, unreachable } from './node-backend.ts';

/** `kubectl logs`: what a container printed, as its node has it. */

export interface NodeConnection {
  readonly registry: Pick<Registry, 'view'>;
  readonly transport: BackendTransport;
  /** PEM of whom nodes' certificates are signed by. */
  readonly authority: string;
}

/** How long a node may take to begin; what it then says may take for ever. */
const ANSWER_TIMEOUT_MS = 30_000;
/** As much of a node's complaint as is passed on. */
const COMPLAINT_BYTES_MAX = 50_000;

/** Passed on as they are, once they are known to be sound. */
const FLAGS = ['follow', 'previous', 'timestamps'];
const NUMBERS: readonly [name: string, minimum: number, complaint: string][] = [
  ['tailLines', 0, 'must be greater than or equal to 0'],
  ['limitBytes', 1, 'must be greater than 0'],
  ['sinceSeconds', 1, 'must be greater than 0'],
];

/** Asks the pod's node. A pod that has none yet has said nothing. */
export async function podLog({ registry, transport, authority }: NodeConnection, call: Call): Promise<ApiResponse> {
  const { request, target } = call;
  const query = optionsOf(request.query, target.name);
  const pod = registry.view('pods').get(target.namespace, target.name);
  if (!pod) throw notFound(target.definition, target.name);
  const container = containerOf(pod, request.query.get('container') ?? '');
  const nodeName = textAt(objectAt(pod, 'spec'), 'nodeName');
  if (nodeName === '') return { status: 204, headers: {}, body: '' };
  const backend = nodeBackend(registry, nodeName, authority);
  const segments = ['containerLogs', target.namespace, target.name, container].map(encodeURIComponent).join('/');
  const path = `/${segments}${query.size > 0 ? `?${query.toString()}` : ''}`;
  let response: BackendResponse;
  try {
    const headers = { accept: '*/*' };
    const { signal } = request;
    response = await transport.send(backend, { method: 'GET', path, headers, signal, timeoutMs: ANSWER_TIMEOUT_MS });
  } catch (error) {
    if (!(error instanceof BackendError)) throw error;
    const message = `Get "https://${hostOf(backend)}${path}": ${unreachable(backend, error)}`;
    throw new ApiError(500, '', message, undefined, error);
  }
  if (response.status !== 200) throw await complaint(response, target.name);
  const type = response.headers['content-type'] ?? 'text/plain';
  return { status: 200, headers: { 'content-type': type }, body: response.body };
}

/** The parameters that concern the node. Throws 400 for what cannot be read and 422 for what makes no sense. */
function optionsOf(query: URLSearchParams, name: string): URLSearchParams {
  const passed = new URLSearchParams();
  const errors: FieldError[] = [];
  for (const flag of FLAGS) {
    if (isTrue(query.get(flag))) passed.set(flag, 'true');
  }
  for (const [field, minimum, detail] of NUMBERS) {
    const text = query.get(field) ?? '';
    if (text === '') continue;
    if (!/^-?\d{1,15}$/.test(text)) throw badRequest(`${field} is not a number: ${JSON.stringify(text)}`);
    if (Number(text) < minimum) errors.push(invalid(field, Number(text), detail));
    passed.set(field, text);
  }
  const sinceTime = query.get('sinceTime') ?? '';
  if (sinceTime !== '' && passed.has('sinceSeconds'))
    errors.push(forbidden('', 'at most one of `sinceTime` or `sinceSeconds` may be specified'));
  if (sinceTime !== '' && Number.isNaN(Date.parse(sinceTime)))
    throw badRequest(`sinceTime is not a time: ${JSON.stringify(sinceTime)}`);
  if (sinceTime !== '') passed.set('sinceTime', sinceTime);
  if (errors.length > 0) throw invalidObject('', 'PodLogOptions', name, errors);
  return passed;
}

function containerOf(pod: KubeObject, wanted: string): string {
  const spec = objectAt(pod, 'spec');
  const namesOf = (field: string): string[] => objectsAt(spec, field).map((each) => textAt(each, 'name'));
  const [own, init, debug] = [namesOf('containers'), namesOf('initContainers'), namesOf('ephemeralContainers')];
  const { name = '' } = pod.metadata;
  if (wanted !== '') {
    if ([...own, ...init, ...debug].includes(wanted)) return wanted;
    throw badRequest(`container ${wanted} is not valid for pod ${name}`);
  }
  if (own.length === 1) return own[0] ?? '';
  const more = init.length > 0 ? ` or one of the init containers: [${init.join(' ')}]` : '';
  throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${own.join(' ')}]${more}`);
}

async function readText({ body }: BackendResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > COMPLAINT_BYTES_MAX) break;
  }
  return Buffer.concat(chunks).toString('utf8', 0, COMPLAINT_BYTES_MAX);
}

/** What the node has to say instead of a log. */
async function complaint(response: BackendResponse, name: string): Promise<ApiError> {
  const text = await readText(response);
  if (response.status === 400) return badRequest(text);
  if (response.status === 500) return internalError(text);
  const isMissing = response.status === 404;
  const what = isMissing
    ? 'the server could not find the requested resource'
    : 'the server rejected our request for an unknown reason';
  return new ApiError(response.status, isMissing ? 'NotFound' : 'Unknown', `${what} ( pods/log ${name})`, {
    name,
    kind: 'pods/log',
    causes: [{ reason: 'UnexpectedServerResponse', message: text }],
  });
}

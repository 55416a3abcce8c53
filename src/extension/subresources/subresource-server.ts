import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  ApiError,
  badRequest,
  internalError,
  methodNotAllowed,
  pathNotFound,
  type Status,
  unauthorized,
} from '../../api/status.ts';
import type { Clock, Logger } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { decodeYaml } from '../../machinery/decode.ts';
import { found } from '../find-object.ts';
import type { UserInfo } from '../server/front-proxy.ts';
import {
  type ExtensionRequest,
  type ExtensionResponse,
  headerOf,
  jsonResponse,
  type UpgradeAnswer,
} from '../server/message.ts';
import { type Agents, guestPath, textOf } from './agents.ts';
import { type Attempt, authorize } from './authorize.ts';
import { documents } from './documents.ts';
import { cancelEvacuation } from './evacuate-cancel.ts';
import { explainPolicy } from './explain-policy.ts';
import { SUBRESOURCE_GROUP, SUBRESOURCE_VERSIONS, SUBRESOURCES } from './group.ts';
import { GUEST_ACTIONS, type GuestAction, guestRefusal } from './guest-checks.ts';
import { nodes } from './https-agents.ts';
import { migrate } from './migrate.ts';
import { changePower } from './power.ts';
import { reclaim } from './reclaim.ts';
import type { PowerAction, PowerOptions } from './power-requests.ts';
import { logOptions, nodesWithAgents, SerialLogs } from './serial-log.ts';

export interface SubresourceServerOptions {
  readonly client: Client;
  readonly agents: Agents;
  readonly clock: Clock;
  readonly log: Logger;
  readonly recorder: Pick<EventRecorder, 'event'>;
  /** The cluster's configuration as it is now. */
  readonly configuration: () => KubeVirtConfiguration;
  /** Of Godwit itself, as in `0.1.0`. */
  readonly version: string;
  /** Who asks, if somebody who may say so says it. */
  readonly userOf: (request: ExtensionRequest) => UserInfo | undefined;
}

/** Accepted, with nothing to say: what the controllers make of it is seen in the objects. */
const ACCEPTED: ExtensionResponse = { status: 202, headers: {}, body: '' };
/** The same of what is done when it is answered, as KubeVirt answers it. */
const DONE: ExtensionResponse = { ...ACCEPTED, status: 200 };
const POWER_ACTIONS: readonly string[] = ['start', 'stop', 'restart'] satisfies PowerAction[];

/** Serves `subresources.kubevirt.io` behind an API server, which has authenticated whoever asks. */
export class SubresourceServer {
  readonly #options: SubresourceServerOptions;
  readonly #documents: ReadonlyMap<string, object>;
  readonly #logs: SerialLogs;

  constructor(options: SubresourceServerOptions) {
    this.#options = options;
    this.#documents = documents(options.version);
    const { client, agents, clock, log } = options;
    this.#logs = new SerialLogs({
      agents,
      clock,
      log,
      guestOf: ({ namespace, name }, signal) => client.find(virtualMachineInstances, namespace, name, signal),
      nodes: async (signal) => nodesWithAgents((await client.list(nodes, {}, signal)).items),
    });
  }

  async handle(request: ExtensionRequest): Promise<ExtensionResponse> {
    const document = this.#documents.get(request.path);
    if (document) {
      if (request.method !== 'GET') throw methodNotAllowed();
      return jsonResponse(200, document);
    }
    const { attempt, user } = await this.#admit(request);
    const { subresource } = attempt.subresource;
    if (subresource === 'migrate') return this.#migrate(attempt, user, request);
    if (subresource === 'evacuate/cancel') return this.#stay(attempt, request);
    if (subresource === 'reclaim') return this.#reclaim(attempt, user, request);
    if (subresource === 'migrationpolicy') return this.#explainPolicy(attempt, request);
    if (POWER_ACTIONS.includes(subresource)) return this.#power(subresource as PowerAction, attempt, request);
    if (subresource === 'log') return this.#log(attempt, request);
    if (subresource === 'guestosinfo') return this.#guestOsInfo(attempt, request);
    if (subresource === 'console') throw badRequest('the console is a WebSocket: ask for an upgrade');
    return this.#act(subresource as GuestAction, attempt, request);
  }

  /** The one that is a connection: the console. */
  async upgrade(request: ExtensionRequest): Promise<UpgradeAnswer> {
    const { attempt } = await this.#admit(request);
    if (attempt.subresource.subresource !== 'console') throw badRequest('only the console is a connection');
    if (headerOf(request, 'upgrade')?.toLowerCase() !== 'websocket') throw badRequest('the console is a WebSocket');
    const guest = await this.#guest(attempt, request.signal);
    const refusal = guestRefusal('console', guest);
    if (refusal) throw refusal;
    const { namespace, name } = attempt;
    const path = guestPath(namespace, name, 'console');
    const headers = Object.fromEntries(
      Object.entries(request.headers)
        .filter(([header]) => header.startsWith('sec-websocket-'))
        .map(([header, values = []]) => [header, values.join(', ')]),
    );
    return this.#options.agents.upgrade(nodeOf(guest), { method: 'GET', path, signal: request.signal }, headers);
  }

  /** What a request is for and who asks, if they may do that. */
  async #admit(request: ExtensionRequest): Promise<{ readonly attempt: Attempt; readonly user: UserInfo }> {
    const user = this.#options.userOf(request);
    if (!user) throw unauthorized();
    const attempt = attemptOf(request);
    await authorize(this.#options.client, user, attempt, request.signal);
    return { attempt, user };
  }

  async #migrate(attempt: Attempt, user: UserInfo, request: ExtensionRequest): Promise<ExtensionResponse> {
    const { namespace, name } = attempt;
    const body = await bodyOf(request);
    const { client, configuration } = this.#options;
    const { addedNodeSelector } = body;
    const wish = { namespace, name, user, addedNodeSelector, dryRun: isDryRun(body, request) };
    await migrate(client, configuration(), wish, request.signal);
    return ACCEPTED;
  }

  async #stay({ subresource, namespace, name }: Attempt, request: ExtensionRequest): Promise<ExtensionResponse> {
    const body = await bodyOf(request);
    const { client, configuration } = this.#options;
    const { evacuationNodeName } = body;
    const wish = {
      resource: subresource.resource,
      namespace,
      name,
      evacuationNodeName,
      dryRun: isDryRun(body, request),
    };
    await cancelEvacuation(client, configuration(), wish, request.signal);
    return DONE;
  }

  async #reclaim({ namespace, name }: Attempt, user: UserInfo, request: ExtensionRequest): Promise<ExtensionResponse> {
    const body = await bodyOf(request);
    const { client, clock, recorder } = this.#options;
    const { fenced: isFenced, keep, afresh } = body;
    const wish = { namespace, name, user: user.username, isFenced, keep, afresh, dryRun: isDryRun(body, request) };
    return jsonResponse(200, { message: await reclaim({ client, clock, recorder }, wish, request.signal) });
  }

  async #explainPolicy(attempt: Attempt, { signal }: ExtensionRequest): Promise<ExtensionResponse> {
    const { client, configuration } = this.#options;
    return jsonResponse(200, await explainPolicy(client, configuration(), attempt, signal));
  }

  async #power(action: PowerAction, attempt: Attempt, request: ExtensionRequest): Promise<ExtensionResponse> {
    const { namespace, name } = attempt;
    const body = await bodyOf(request);
    const options = powerOptions(body);
    await changePower(
      this.#options.client,
      { action, namespace, name, options, dryRun: isDryRun(body, request) },
      request.signal,
    );
    return ACCEPTED;
  }

  async #act(action: GuestAction, attempt: Attempt, request: ExtensionRequest): Promise<ExtensionResponse> {
    if (!GUEST_ACTIONS.includes(action)) throw pathNotFound();
    const { namespace, name } = attempt;
    const body = await bodyOf(request);
    const guest = await this.#guest(attempt, request.signal);
    const refusal = guestRefusal(action, guest);
    if (refusal) throw refusal;
    if (isDryRun(body, request)) return ACCEPTED;
    const { signal } = request;
    const path = guestPath(namespace, name, action);
    const answer = await this.#options.agents.send(nodeOf(guest), { method: 'PUT', path, signal });
    const text = await textOf(answer.body);
    if (answer.status < 200 || answer.status >= 300) throw agentError(answer.status, text);
    return ACCEPTED;
  }

  /** Guests come and go, and so does what they said: there need not be a guest now. */
  async #log({ namespace, name }: Attempt, { query, signal }: ExtensionRequest): Promise<ExtensionResponse> {
    const body = await this.#logs.open({ namespace, name }, logOptions(query), signal);
    return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body };
  }

  /** What the agent inside the guest says of it, by way of the node's. */
  async #guestOsInfo(attempt: Attempt, { signal }: ExtensionRequest): Promise<ExtensionResponse> {
    const guest = await this.#guest(attempt, signal);
    const refusal = guestRefusal('guestosinfo', guest);
    if (refusal) throw refusal;
    const path = guestPath(attempt.namespace, attempt.name, 'guestosinfo');
    const answer = await this.#options.agents.send(nodeOf(guest), { method: 'GET', path, signal });
    const text = await textOf(answer.body);
    if (answer.status !== 200) throw agentError(answer.status, text);
    return jsonResponse(200, {
      ...(JSON.parse(text) as object),
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceGuestAgentInfo',
      metadata: {},
    });
  }

  #guest({ namespace, name }: Attempt, signal: AbortSignal): Promise<VirtualMachineInstance> {
    return found(this.#options.client, virtualMachineInstances, namespace, name, signal);
  }
}

function nodeOf({ status, metadata }: VirtualMachineInstance): string {
  // The record is ahead of what is told of it.
  const nodeName = status?.rightToRun?.holder?.node ?? status?.nodeName;
  if (!nodeName) throw internalError(`the VMI ${metadata.name} is on no node`);
  return nodeName;
}

function attemptOf({ method, path }: ExtensionRequest): Attempt {
  const [, apis, group, version = '', namespaces, namespace = '', resource, name = '', ...rest] = path
    .split('/')
    .map(decodedSegment);
  const isOurs = apis === 'apis' && group === SUBRESOURCE_GROUP && namespaces === 'namespaces';
  if (!isOurs || !SUBRESOURCE_VERSIONS.some((each) => each === version)) throw pathNotFound();
  if (namespace === '' || name === '') throw pathNotFound();
  const subresource = SUBRESOURCES.find((each) => each.resource === resource && each.subresource === rest.join('/'));
  if (!subresource) throw pathNotFound();
  if (subresource.method !== method) throw methodNotAllowed();
  return { subresource, version, namespace, name };
}

function decodedSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    // Nothing of ours is called so.
    throw pathNotFound();
  }
}

type Body = { readonly [field: string]: unknown };

async function bodyOf(request: ExtensionRequest): Promise<Body> {
  const bytes = await request.body();
  if (bytes.length === 0) return {};
  try {
    const { value } = decodeYaml(bytes);
    if (value === null) return {};
    if (typeof value === 'object' && !Array.isArray(value)) return value;
  } catch (error) {
    throw badRequest(`Can not unmarshal Request body to struct, error: ${(error as Error).message}`, error);
  }
  throw badRequest('Can not unmarshal Request body to struct, error: it is no object');
}

function powerOptions(body: Body): PowerOptions {
  return {
    paused: body['paused'] === true,
    gracePeriod: secondsIn(body, 'gracePeriod'),
    gracePeriodSeconds: secondsIn(body, 'gracePeriodSeconds'),
  };
}

function secondsIn(body: Body, field: string): number | undefined {
  const value = body[field];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' || !Number.isSafeInteger(value))
    throw badRequest(`Can not unmarshal Request body to struct, error: ${field} must be a whole number`);
  return value;
}

/** Said in the body, as in KubeVirt, or in the query. What is asked for in other words must not be done for real. */
function isDryRun({ dryRun = [] }: Body, { query }: ExtensionRequest): boolean {
  const said: readonly unknown[] = [...(Array.isArray(dryRun) ? dryRun : [dryRun]), ...query.getAll('dryRun')];
  const values = said.filter((value) => value !== null && value !== '');
  const other = values.find((value) => value !== 'All');
  if (other !== undefined)
    throw badRequest(`dryRun: Unsupported value: ${JSON.stringify(other)}: supported values: "All"`);
  return values.length > 0;
}

/** What the agent said, as if it had been asked directly. */
function agentError(code: number, text: string): ApiError {
  try {
    const status = JSON.parse(text) as Partial<Status> | null;
    if (status?.kind === 'Status') return ApiError.fromStatus({ ...status, code: status.code ?? code });
  } catch {
    // Not all that answers on a port is an agent.
  }
  return internalError(`the agent answered ${code}: ${text.slice(0, 200)}`);
}

import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { LOG_OFFSET_HEADER } from '../../api/guest-run.ts';
import { agentPortOf } from '../../api/kubevirt/agent-port.ts';
import type { Condition, KubeObject } from '../../api/meta.ts';
import { ApiError, serviceUnavailable } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { nodeServerError, nodeServerName } from '../../machinery/node-server-identity.ts';
import type { UpgradeAnswer } from '../server/message.ts';
import type { AgentRequest, AgentResponse, Agents } from './agents.ts';
import type { OwnToken } from './own-token.ts';

/** Reaches agents over HTTPS, where their Nodes say that they are. */

export interface Node extends KubeObject {
  status?: {
    conditions?: Condition[];
    addresses?: { type: string; address: string }[];
    daemonEndpoints?: { kubeletEndpoint?: { Port?: number } };
  };
}

export const nodes: Resource<Node> = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };

export interface HttpsAgentsOptions {
  readonly clock: Clock;
  readonly client: Client;
  readonly token: OwnToken;
  /** PEM of the cluster's authority, as it is now. */
  readonly clusterAuthority: () => string;
}

/** How long the head of an answer may take; bodies may take for ever. */
const ANSWER_TIMEOUT_MS = 20_000;
const IDLE_SOCKETS_MAX = 4;
const IDLE_TIMEOUT_MS = 30_000;

interface Place {
  readonly node: string;
  readonly host: string;
  readonly port: number;
}

export class HttpsAgents implements Agents {
  readonly #options: HttpsAgentsOptions;
  readonly #connections = new Agent({ keepAlive: true, maxFreeSockets: IDLE_SOCKETS_MAX, timeout: IDLE_TIMEOUT_MS });

  constructor(options: HttpsAgentsOptions) {
    this.#options = options;
  }

  /** Closes the connections that are kept. */
  close(): void {
    this.#connections.destroy();
  }

  async send(node: string, request: AgentRequest): Promise<AgentResponse> {
    const outgoing = await this.#request(node, request, {});
    return responseOf(await this.#head(node, outgoing, 'response'));
  }

  async upgrade(
    node: string,
    request: AgentRequest,
    headers: Readonly<Record<string, string>>,
  ): Promise<UpgradeAnswer> {
    const outgoing = await this.#request(node, request, { ...headers, connection: 'Upgrade', upgrade: 'websocket' });
    const upgraded = new Promise<UpgradeAnswer>((resolve) => {
      outgoing.once('upgrade', (incoming: IncomingMessage, socket, head) =>
        resolve({ kind: 'joined', headers: handshakeOf(incoming), socket, head }),
      );
    });
    const refused = this.#head(node, outgoing, 'upgrade').then(
      (incoming): UpgradeAnswer => ({ kind: 'refused', response: responseOf(incoming) }),
    );
    return Promise.race([upgraded, refused]);
  }

  async #request(
    node: string,
    { method, path, signal }: AgentRequest,
    headers: Readonly<Record<string, string>>,
  ): Promise<ClientRequest> {
    const [place, token] = await Promise.all([this.#placeOf(node, signal), this.#options.token.current(signal)]);
    return httpsRequest({
      // A connection that becomes another one cannot be kept for the next.
      agent: 'upgrade' in headers ? false : this.#connections,
      host: place.host,
      port: place.port,
      method,
      path,
      signal,
      ca: this.#options.clusterAuthority(),
      // Connections are kept by this name too, so that one to another node on the same address is never taken.
      servername: nodeServerName(node),
      checkServerIdentity: (_host, certificate) => nodeServerError(node, certificate),
      headers: { ...headers, authorization: `Bearer ${token}`, ...(method === 'PUT' ? { 'content-length': 0 } : {}) },
    });
  }

  /** Sends the request; the head of a plain answer. Stays pending where the other outcome comes first. */
  #head(node: string, outgoing: ClientRequest, otherwise: string): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const timer = this.#options.clock.setTimer(
        () => outgoing.destroy(new Error(`no answer within ${ANSWER_TIMEOUT_MS / 1000} s`)),
        ANSWER_TIMEOUT_MS,
      );
      if (otherwise !== 'response') outgoing.once(otherwise, () => timer.cancel());
      outgoing.once('response', (incoming) => {
        timer.cancel();
        resolve(incoming);
      });
      outgoing.once('error', (error) => {
        timer.cancel();
        reject(serviceUnavailable(`the agent of node ${node} cannot be reached: ${error.message}`, error));
      });
      outgoing.end();
    });
  }

  async #placeOf(name: string, signal: AbortSignal): Promise<Place> {
    const node = await this.#options.client.get(nodes, '', name, signal).catch((error: unknown) => {
      if (error instanceof ApiError && error.code === 404)
        throw serviceUnavailable(`node ${name} is not there any more`, error);
      throw error;
    });
    const { addresses = [] } = node.status ?? {};
    const of = (type: string): string | undefined => addresses.find((each) => each.type === type)?.address;
    const host = of('InternalIP') ?? of('ExternalIP') ?? of('Hostname');
    const port = agentPortOf(node);
    if (host === undefined || port === undefined)
      throw serviceUnavailable(`node ${name} does not say where its agent is`);
    return { node: name, host, port };
  }
}

function responseOf(incoming: IncomingMessage): AgentResponse {
  const headers: Record<string, string> = {};
  for (const name of ['content-type', LOG_OFFSET_HEADER] as const) {
    const value = incoming.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  return { status: incoming.statusCode ?? 0, headers, body: incoming as AsyncIterable<Uint8Array> };
}

/** What the client needs to see of the agent's side of the handshake. */
function handshakeOf({ headers }: IncomingMessage): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if ((name === 'upgrade' || name.startsWith('sec-websocket-')) && typeof value === 'string') passed[name] = value;
  }
  return passed;
}

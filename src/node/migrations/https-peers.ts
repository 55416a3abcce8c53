import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { errorMessage } from '../../api/error-message.ts';
import type { Clock } from '../../env/ports.ts';
import type { ClusterAccess } from '../../kube/cluster-access.ts';
import { nodeServerError, nodeServerName } from '../../machinery/node-server-identity.ts';
import { type Peer, PEER_METHOD, PEER_PATH, type PeerAnswer, PeerError, type PeerRequest, type Peers } from './peer.ts';
import { parseAnswer } from './peer-language.ts';
import { PinnedAgent } from './pinned-agent.ts';

export interface HttpsPeersOptions {
  /** What this node shows that it is, as it is now, and whose word others are believed on. */
  readonly access: Pick<ClusterAccess, 'authorities' | 'credentials'>;
  readonly clock: Clock;
}

/** A machine with every device that there can be is described in less. */
const ANSWER_BYTES_MAX = 1024 * 1024;
/** What is refused ends up in a status. */
const MESSAGE_LENGTH_MAX = 1024;
const IDLE_SOCKETS_MAX = 4;
/** Servers keep connections for a minute: one that may be gone is not used when a guest stands still. */
const IDLE_TIMEOUT_MS = 50_000;

const CONNECTIONS = { keepAlive: true, maxFreeSockets: IDLE_SOCKETS_MAX, timeout: IDLE_TIMEOUT_MS };

/**
 * Reaches the agents of other nodes over HTTPS, where both sides show certificates of the cluster; or, of nodes that may be
 * of another one, certificates with the keys that were named for the migration at hand: no other cluster's authority is
 * ever believed here, whatever it has signed.
 */
export class HttpsPeers implements Peers {
  readonly #options: HttpsPeersOptions;
  readonly #connections = new Agent(CONNECTIONS);
  readonly #pinned: PinnedAgent;

  constructor(options: HttpsPeersOptions) {
    this.#options = options;
    this.#pinned = new PinnedAgent(CONNECTIONS, options.clock);
  }

  /** Closes the connections that are kept. */
  close(): void {
    this.#connections.destroy();
    this.#pinned.destroy();
  }

  async exchange(peer: Peer, request: PeerRequest, signal: AbortSignal): Promise<PeerAnswer> {
    const { access } = this.#options;
    const [{ certificate, key }, ca] = await Promise.all([access.credentials(signal), access.authorities()]);
    if (certificate === undefined || key === undefined)
      throw new PeerError('Refused', 'this node has no certificate to show to other nodes');
    // Without authorities the system's would be believed, who know no nodes.
    const tls = { cert: certificate, key, ca: ca ?? [] };
    const incoming = await this.#send(peer, JSON.stringify(request), tls, signal);
    return answerOf(peer, incoming.status, incoming.text);
  }

  async #send(peer: Peer, body: string, tls: Credentials, signal: AbortSignal): Promise<Incoming> {
    for (let tries = 1; ; tries++) {
      const attempt = this.#attempt(peer, body, tls, signal);
      try {
        return await attempt.answered;
      } catch (error) {
        // A connection that was kept may have been closed meanwhile; whatever is asked may be asked twice.
        if (tries === 1 && attempt.isOnKeptConnection() && !signal.aborted) continue;
        throw new PeerError(
          'Unreachable',
          `the agent of node ${peer.node} cannot be reached: ${errorMessage(error)}`,
          error,
        );
      }
    }
  }

  #attempt({ node, address, port, keys }: Peer, body: string, tls: Credentials, signal: AbortSignal) {
    const outgoing = httpsRequest({
      ...tls,
      ...(keys ? { agent: this.#pinned, pins: keys } : { agent: this.#connections }),
      host: address,
      port,
      method: PEER_METHOD,
      path: PEER_PATH,
      signal,
      // Connections are kept by this name too, so that one to another node on the same address is never taken.
      servername: nodeServerName(node),
      checkServerIdentity: (_host, certificate) => nodeServerError(node, certificate),
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    });
    const answered = new Promise<Incoming>((resolve, reject) => {
      outgoing.once('error', reject);
      outgoing.once('response', (incoming) => resolve(read(incoming)));
      outgoing.end(body);
    });
    return { answered, isOnKeptConnection: () => outgoing.reusedSocket };
  }
}

interface Credentials {
  readonly cert: string;
  readonly key: string;
  readonly ca: string | string[];
}

interface Incoming {
  readonly status: number;
  readonly text: string;
}

async function read(incoming: IncomingMessage): Promise<Incoming> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > ANSWER_BYTES_MAX) throw new Error(`its answer is longer than ${ANSWER_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return { status: incoming.statusCode ?? 0, text: Buffer.concat(chunks).toString() };
}

function answerOf({ node }: Peer, status: number, text: string): PeerAnswer {
  if (status !== 200) {
    const reason = messageIn(text) ?? `it answers with status ${status}`;
    // Who has trouble of its own, or is about to end, has not said no.
    throw new PeerError(status >= 500 ? 'Unreachable' : 'Refused', `the agent of node ${node}: ${reason}`);
  }
  try {
    return parseAnswer(JSON.parse(text));
  } catch (error) {
    throw new PeerError('Unreachable', `the agent of node ${node} makes no sense: ${errorMessage(error)}`, error);
  }
}

/** What a Status says. */
function messageIn(text: string): string | undefined {
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === 'string' && message !== '' ? message.slice(0, MESSAGE_LENGTH_MAX) : undefined;
  } catch {
    // Somebody else than an agent.
    return undefined;
  }
}

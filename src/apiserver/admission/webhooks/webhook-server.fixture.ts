import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { realClock, realRandom } from '../../../env/real.ts';
import { createAuthority, DAY_MS, issueIdentity } from '../../../machinery/x509/authority.ts';

/** A real webhook over real TLS, with an authority of its own, for tests. */

/** The part of an AdmissionReview that tests look at. */
export interface Review {
  readonly apiVersion: string;
  readonly kind: string;
  readonly request: Record<string, unknown> & { readonly uid: string };
}

export type Respond = (review: Review, response: ServerResponse, request: IncomingMessage) => void;

export interface WebhookServer {
  readonly port: number;
  /** PEM of the authority that signed the server's certificate. */
  readonly caPem: string;
  /** Reviews that arrived, and the paths they came by. */
  readonly reviews: Review[];
  readonly paths: string[];
  /** How many connections were opened. */
  connections: number;
  readonly server: Server;
  close(): Promise<void>;
}

/** Answers a review with this response, its uid echoed. */
export function answer(review: Review, response: ServerResponse, fields: Record<string, unknown>): void {
  const { apiVersion, kind, request } = review;
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify({ apiVersion, kind, response: { uid: request.uid, ...fields } }));
}

/** A JSON patch as a response carries it. */
export function patchFields(operations: readonly object[]): Record<string, unknown> {
  return {
    allowed: true,
    patchType: 'JSONPatch',
    patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
  };
}

/** Starts a server on a free port of this machine; `respond` is called with every review. */
export async function startWebhookServer(
  respond: Respond,
  dnsNames: readonly string[] = ['localhost', 'hook.ns.svc'],
  host = '127.0.0.1',
): Promise<WebhookServer> {
  const authority = await createAuthority({ clock: realClock, random: realRandom }, 'webhook-ca');
  const identity = await issueIdentity(authority, {
    commonName: 'webhook',
    dnsNames,
    ipAddresses: ['127.0.0.1'],
    usages: ['server'],
    validityMs: DAY_MS,
  });
  const server = createServer({ cert: identity.certificatePem, key: identity.keyPem });
  const state: { reviews: Review[]; paths: string[] } = { reviews: [], paths: [] };
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const review = JSON.parse(await readText(request)) as Review;
    state.reviews.push(review);
    state.paths.push(request.url ?? '');
    respond(review, response, request);
  };
  server.on('request', (request, response) => void receive(request, response));
  server.listen(0, host);
  await once(server, 'listening');
  const running: WebhookServer = {
    port: (server.address() as AddressInfo).port,
    caPem: authority.certificatePem,
    ...state,
    connections: 0,
    server,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  server.on('secureConnection', () => running.connections++);
  return running;
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

import type { IncomingMessage } from 'node:http';
import { ApiError, badRequest, entityTooLarge, unauthorized } from '../../api/status.ts';
import { nodeOfUser } from '../../machinery/node-user.ts';
import { PEER_METHOD, PEER_PATH, type PeerCaller, type PeerRequest } from '../migrations/peer.ts';
import { parseRequest } from '../migrations/peer-language.ts';
import { ShapeError } from '../migrations/reader.ts';
import type { Shown } from './callers.ts';

/** What the agents of other nodes ask of migrations. They are known by their certificates alone. */

/** A machine with every device that there can be is described in less. */
const BODY_BYTES_MAX = 256 * 1024;

export function isPeerRequest({ method, url }: IncomingMessage): boolean {
  return method === PEER_METHOD && url === PEER_PATH;
}

/** What an agent has shown. */
export interface ShownByPeer {
  /** Of a certificate that the cluster's authority has signed. */
  readonly certificate: Shown['certificate'];
  /** By what the key of its certificate is known, whoever has signed that. */
  readonly key: string | undefined;
}

/**
 * Who asks: a node of this cluster, or somebody with the key of one elsewhere whose guest is to come here. Throws an
 * ApiError for anybody else, before they can ask anything.
 */
export function callingPeer({ certificate, key }: ShownByPeer, isAwaited: (key: string) => boolean): PeerCaller {
  const { commonName: username = '', organizations: groups = [] } = certificate ?? {};
  const node = certificate && nodeOfUser({ username, groups });
  if (node) return { node, key };
  if (key !== undefined && isAwaited(key)) return { key };
  if (!certificate) throw unauthorized();
  throw new ApiError(403, 'Forbidden', `migrations are a matter between nodes, and ${username} is none`);
}

/** What it asks. Rejects with an ApiError where that is too long, or makes no sense. */
export async function readPeerRequest(request: IncomingMessage): Promise<PeerRequest> {
  const text = await readBody(request);
  let sent: unknown;
  try {
    sent = JSON.parse(text);
  } catch (error) {
    throw badRequest('the body is no JSON', error);
  }
  try {
    return parseRequest(sent);
  } catch (error) {
    if (error instanceof ShapeError) throw badRequest(error.message, error);
    throw error;
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  // Whoever has sent too much is answered, and then hung up on; leaving the loop would hang up at once.
  await new Promise<void>((resolve, reject) => {
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > BODY_BYTES_MAX) reject(entityTooLarge(BODY_BYTES_MAX));
      else chunks.push(chunk);
    });
    request.once('end', resolve);
    request.once('error', reject);
  });
  return Buffer.concat(chunks).toString();
}

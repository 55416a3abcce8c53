import type { IncomingMessage } from 'node:http';
import { ApiError, badRequest, entityTooLarge, unauthorized } from '../../api/status.ts';
import { nodeOfUser } from '../../machinery/node-user.ts';
import { PEER_METHOD, PEER_PATH, type PeerRequest } from '../migrations/peer.ts';
import { parseRequest } from '../migrations/peer-language.ts';
import { ShapeError } from '../migrations/reader.ts';
import type { Shown } from './callers.ts';

/** What the agents of other nodes ask of migrations. They are known by their certificates alone. */

/** A machine with every device that there can be is described in less. */
const BODY_BYTES_MAX = 256 * 1024;

export function isPeerRequest({ method, url }: IncomingMessage): boolean {
  return method === PEER_METHOD && url === PEER_PATH;
}

/** The node that asks. Throws an ApiError for anybody else. */
export function callingNode(certificate: Shown['certificate']): string {
  if (!certificate) throw unauthorized();
  const { commonName: username, organizations: groups } = certificate;
  const node = nodeOfUser({ username, groups });
  if (!node) throw new ApiError(403, 'Forbidden', `migrations are a matter between nodes, and ${username} is none`);
  return node;
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

import type { NodeMigration } from './node-migration.ts';
import { PeerError } from './peer.ts';

/** A node without a channel to others: from it no guest can go anywhere, and none comes. */
export const LONELY_NODE: NodeMigration = {
  peers: { exchange: () => Promise.reject(new PeerError('Unreachable', 'this agent has no channel to others')) },
  address: () => undefined,
  host: '127.0.0.1',
  credentials: {
    issue: () => Promise.reject(new Error('guests cannot come to this node')),
    write: () => Promise.reject(new Error('guests cannot leave this node')),
  },
  cpus: 1,
  ramBytesOf: ({ memoryBytes }) => memoryBytes,
};

import type { PlacedDisk } from '../../hypervisor/compare.ts';
import type { DiskSpec, MachineSpec } from '../../hypervisor/machine.ts';
import type { CopyCredentials } from './copy-credentials.ts';
import type { CopyRelays } from './copy-relays.ts';
import type { DiskFile } from './described-machines.ts';
import type { AgentAddress } from './migrations.ts';
import type { Peers } from './peer.ts';

/** What the agent of a node needs for guests that leave it, or come to it. */
export interface NodeMigration {
  /** The agents of other nodes. */
  readonly peers: Peers;
  /** Where they reach this one; undefined for as long as they cannot. */
  readonly address: () => AgentAddress | undefined;
  /** The address at which machines wait for copies. */
  readonly host: string;
  /** The one at which they wait for those from nodes of this cluster, where that is another. */
  readonly migrationHost?: string | undefined;
  readonly credentials: CopyCredentials;
  /** For copies that are not encrypted; where there are none, all are. */
  readonly relays?: CopyRelays;
  /** How many processors this host has. */
  readonly cpus: number;
  /** How much RAM, to the byte, a machine gets on this node. */
  readonly ramBytesOf: (spec: MachineSpec) => number;
  /** How large a guest sees a disk; undefined where nobody can tell. */
  readonly diskBytesOf?: (disk: PlacedDisk) => Promise<number | undefined>;
  /** Which file a disk is; undefined where nobody can tell. */
  readonly diskFileOf?: (disk: DiskSpec) => Promise<DiskFile | undefined>;
}

import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { parseQuantity, quantityToNumber } from '../../api/quantity.ts';
import type { MultipleChannels } from '../../hypervisor/migration.ts';
import type { MigrationOptions } from '../../migration/policies/options.ts';
import type { WantedMethod } from './peer.ts';

/** What decides how a copy is sent, besides its options. */
export interface MethodFacts {
  readonly memoryBytes: number;
  /** Of the source's host. */
  readonly cpus: number;
  /** Whether both sides can prove who they are also where nothing is encrypted. */
  readonly canBePlain?: boolean;
}

/** Smaller guests are over before a second stream has got going. */
const CHANNELS_MEMORY_BYTES_MIN = 2 ** 30;
const CHANNELS_MIN = 2;
/** More are said to bring little below a hundred gigabits per second. */
const CHANNELS_MAX = 8;

/** How a copy is best sent. */
export function wantedMethod(options: MigrationOptions, facts: MethodFacts): WantedMethod {
  const isEncrypted = !options.disableTLS || !facts.canBePlain;
  // A plain copy goes through both agents, and would leave a guest without its memory that has gone ahead of it.
  const allowsPostCopy = isEncrypted && wantsPostCopy(options);
  const channels = allowsPostCopy ? undefined : wantedChannels(options, facts);
  return { allowsPostCopy, ...(channels ? { channels } : {}), isEncrypted };
}

/** Whether it was asked for. It disturbs the guest, so that nobody would start it where that is forbidden. */
export function wantsPostCopy({ allowPostCopy, allowWorkloadDisruption }: MigrationOptions): boolean {
  return allowPostCopy && allowWorkloadDisruption;
}

function wantedChannels(options: MigrationOptions, { memoryBytes, cpus }: MethodFacts): MultipleChannels | undefined {
  // QEMU keeps no limit over several channels.
  if (bandwidthBytesPerSecond(options) > 0) return undefined;
  const count = Math.min(CHANNELS_MAX, Math.max(CHANNELS_MIN, cpus));
  // Only what goes over several channels can be packed this way.
  if (options.experimental.compression === 'zstd') return { count, compression: 'zstd' };
  const helps = cpus >= CHANNELS_MIN && memoryBytes >= CHANNELS_MEMORY_BYTES_MIN;
  return helps ? { count, compression: 'none' } : undefined;
}

/** The limit that options set; 0 for none. */
export function bandwidthBytesPerSecond({ bandwidthPerMigration }: MigrationOptions): number {
  const quantity = parseQuantity(bandwidthPerMigration);
  return quantity ? Math.max(0, quantityToNumber(quantity)) : 0;
}

/** What the status of a guest says of it. */
export function channelStatus(method: {
  readonly isEncrypted: boolean;
  readonly channels?: MultipleChannels | undefined;
}): NonNullable<MigrationState['channel']> {
  const { channels, isEncrypted } = method;
  return {
    encrypted: isEncrypted,
    multifdChannels: channels?.count ?? 0,
    compression: channels?.compression ?? 'none',
  };
}

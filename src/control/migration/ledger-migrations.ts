import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import {
  isFinalMigration,
  type MigrationPhase,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { ownState } from '../../migration/phase/facts.ts';
import type { MigrationReference, SlotHolder } from '../../migration/slots/request.ts';

/** What the server itself says of migrations, this very moment: no cache is asked. */

/** Whether all of these have ended or are gone; another object of the same name is none of them. */
export async function areOver(
  client: Client,
  members: readonly MigrationReference[],
  signal: AbortSignal,
): Promise<boolean> {
  for (const { namespace, name, uid } of members) {
    const migration = await client.find(virtualMachineInstanceMigrations, namespace, name, signal);
    if (migration && migration.metadata.uid === uid && !isFinalMigration(migration)) return false;
  }
  return true;
}

/** Those that are past the point where they need all of their slots. */
const STARTED: ReadonlySet<MigrationPhase> = new Set(['PreparingTarget', 'TargetReady', 'Running']);

/** Stands for a node that nobody remembers: it is as good as any, and none. */
const UNKNOWN_NODE = '?';

type Nodes = Pick<MigrationState, 'sourceNode' | 'targetNode'>;

/** Who must have had slots, where the ledger is lost: all that have started. The others have to stand in line again. */
export async function startedHolders(client: Client, nowMs: number, signal: AbortSignal): Promise<SlotHolder[]> {
  const { items } = await client.list(virtualMachineInstanceMigrations, {}, signal);
  const started = items.filter(({ status }) => STARTED.has(status?.phase ?? ''));
  const receivers = new Map(started.flatMap((each) => keyed(each.spec.receive?.key, each)));
  const senders = new Map(started.flatMap((each) => keyed(each.spec.sendTo?.key, each)));
  const holders: SlotHolder[] = [];
  for (const migration of started) {
    const { sendTo, receive } = migration.spec;
    // The two halves of a move inside this cluster count once, as the sender.
    if (receive && !sendTo && senders.has(receive.key ?? '')) continue;
    const receiver = sendTo && !receive ? receivers.get(sendTo.key ?? '') : undefined;
    holders.push(holderOf(migration, receiver, await stateOf(client, migration, signal), nowMs));
  }
  return holders;
}

function keyed(
  key: string | undefined,
  migration: VirtualMachineInstanceMigration,
): [string, VirtualMachineInstanceMigration][] {
  return key === undefined ? [] : [[key, migration]];
}

function holderOf(
  migration: VirtualMachineInstanceMigration,
  receiver: VirtualMachineInstanceMigration | undefined,
  { sourceNode, targetNode }: Nodes,
  nowMs: number,
): SlotHolder {
  const { sendTo, receive } = migration.spec;
  const isHalf = (sendTo === undefined) !== (receive === undefined);
  const kind = !isHalf || receiver ? 'local' : sendTo ? 'send' : 'receive';
  const members = [migration, ...(receiver ? [receiver] : [])].map(({ metadata }) => ({
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    uid: metadata.uid ?? '',
  }));
  return {
    uid: migration.metadata.uid ?? '',
    kind,
    members,
    sourceNode: kind === 'receive' ? undefined : (sourceNode ?? UNKNOWN_NODE),
    targetNode: kind === 'send' ? undefined : (targetNode ?? UNKNOWN_NODE),
    state: 'committed',
    sinceMs: nowMs,
  };
}

/** Where a migration goes from and to, as its guest says, or else it itself. */
async function stateOf(
  client: Client,
  migration: VirtualMachineInstanceMigration,
  signal: AbortSignal,
): Promise<Nodes> {
  const { metadata, spec, status } = migration;
  const guestName = spec.vmName ?? spec.vmiName ?? '';
  const guest = await client.find(virtualMachineInstances, metadata.namespace ?? '', guestName, signal);
  return ownState({ migration, guest }) ?? status?.migrationState ?? {};
}

import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { isFinalMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { controllerOf } from '../../kube/owner.ts';
import type { SlotLedger, SlotLimits } from '../../migration/slots/ledger.ts';
import { CONFIGURATIONS, VMIS } from '../buckets.ts';
import type { Invariant, ObservedMachine } from '../invariant.ts';
import { guestsOf, LEDGER, ledgerIn, migrationsOf } from '../moves.ts';
import type { State } from '../observer.ts';

/**
 * Never do more guests move at once than may, in the cluster, from one node or to one node, not for a moment. Slots are
 * taken in the ledger before anything is done, and are kept for as long as anything is done: so the ledger must grow
 * beyond no limit, nobody may lose slots before the end, and whatever is handed off or copied must have them. A limit that
 * was lowered is held once enough of those have ended that had begun before.
 */
export function slotsHold(): Invariant {
  /** What the configuration said, by its version. */
  const limits = new Map<string, SlotLimits>();
  /** UIDs of guests by those of their pods. */
  const guests = new Map<string, string>();
  let machines: readonly ObservedMachine[] = [];
  return {
    name: 'slots-hold',
    observe({ bucket, key, object, previous }, state) {
      if (bucket === CONFIGURATIONS && object)
        limits.set(object.metadata.resourceVersion ?? '', limitsOf(object as KubeVirt));
      const owner = bucket === 'pods' && object ? controllerOf(object) : undefined;
      if (owner) guests.set(object?.metadata.uid ?? '', owner.uid);
      if (bucket === LEDGER.bucket && key === LEDGER.key)
        return aboutLedger(ledgerIn(previous), ledgerIn(object), limits, state) ?? aboutCopies(machines, guests, state);
      return bucket === VMIS && object ? aboutGuest(object as VirtualMachineInstance, state) : undefined;
    },
    executed(all, state) {
      machines = all.filter(({ isAlive }) => isAlive);
      return aboutCopies(machines, guests, state);
    },
  };
}

function limitsOf({ spec }: KubeVirt): SlotLimits {
  const { migrations = {} } = spec.configuration ?? {};
  return {
    perCluster: migrations.parallelMigrationsPerCluster ?? 5,
    outboundPerNode: migrations.parallelOutboundMigrationsPerNode ?? 2,
    inboundPerNode: migrations.parallelInboundMigrationsPerNode ?? 2,
  };
}

function aboutLedger(
  before: SlotLedger | undefined,
  after: SlotLedger | undefined,
  known: ReadonlyMap<string, SlotLimits>,
  state: State,
): string | undefined {
  if (!after) return 'the ledger of slots is gone';
  const said = known.get(after.limitsVersion);
  if (!said || JSON.stringify(said) !== JSON.stringify(after.limits))
    return `the ledger has limits ${JSON.stringify(after.limits)} that version ${after.limitsVersion} has not`;
  if (Number(after.limitsVersion) < Number(before?.limitsVersion ?? 0)) return 'the ledger goes back to older limits';
  return aboutGrowth(before, after) ?? aboutLosses(before, after, state);
}

function aboutGrowth(before: SlotLedger | undefined, after: SlotLedger): string | undefined {
  const old = usage(before);
  for (const [what, count] of usage(after)) {
    const limit = limitOf(what, after.limits);
    if (count > limit && count > (old.get(what) ?? 0))
      return `${count} migrations have slots ${what}, and ${limit} may`;
  }
  return undefined;
}

function limitOf(what: string, { perCluster, outboundPerNode, inboundPerNode }: SlotLimits): number {
  if (what === 'in all') return perCluster;
  return what.startsWith('from') ? outboundPerNode : inboundPerNode;
}

function usage(ledger: SlotLedger | undefined): Map<string, number> {
  const counts = new Map<string, number>();
  const add = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);
  for (const { sourceNode, targetNode } of ledger?.holders.values() ?? []) {
    add('in all');
    if (sourceNode !== undefined) add(`from ${sourceNode}`);
    if (targetNode !== undefined) add(`to ${targetNode}`);
  }
  return counts;
}

function aboutLosses(before: SlotLedger | undefined, after: SlotLedger, state: State): string | undefined {
  const unfinished = new Map(
    migrationsOf(state).flatMap((each) => (isFinalMigration(each) ? [] : [[each.metadata.uid ?? '', each]])),
  );
  for (const { uid, state: standing, members } of before?.holders.values() ?? [])
    if (standing === 'committed' && unfinished.has(uid) && after.holders.get(uid)?.state !== 'committed')
      return `migration ${members[0]?.name} lost its slots before its end`;
  return undefined;
}

/** What was handed off has slots, for these very nodes. */
function aboutGuest({ metadata, status }: VirtualMachineInstance, state: State): string | undefined {
  const { migrationUid, sourceNode, targetNode, completed } = status?.migrationState ?? {};
  const isOver = status?.phase === 'Succeeded' || status?.phase === 'Failed';
  if (!migrationUid || completed === true || isOver) return undefined;
  const holder = ledgerIn(state.get(LEDGER.bucket, LEDGER.key))?.holders.get(migrationUid);
  if (holder?.state === 'committed' && holder.sourceNode === sourceNode && holder.targetNode === targetNode)
    return undefined;
  const has = holder ? `${holder.state} from ${holder.sourceNode} to ${holder.targetNode}` : 'none';
  return `${metadata.name} moves from ${sourceNode} to ${targetNode}, and has slots: ${has}`;
}

/** What is copied has slots. */
function aboutCopies(
  machines: readonly ObservedMachine[],
  guests: ReadonlyMap<string, string>,
  state: State,
): string | undefined {
  const sending = machines.filter((machine) => machine.isSending());
  if (sending.length === 0) return undefined;
  const holders = ledgerIn(state.get(LEDGER.bucket, LEDGER.key))?.holders;
  for (const { guest, node, podUID } of sending) {
    const uid = guests.get(podUID);
    const found = guestsOf(state).find(({ metadata }) => metadata.uid === uid);
    const migration = found?.status?.migrationState?.migrationUid ?? '';
    if (!holders?.has(migration)) return `${guest} is copied from ${node}, and has no slots`;
  }
  return undefined;
}

import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { isFinalMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { NODE_NAME_LABEL, TARGET_NODE_LABEL } from '../../api/kubevirt/well-known.ts';
import { keyOf } from '../../kube/resource.ts';
import { CONFIGURATIONS } from '../buckets.ts';
import type { Invariant, Unsettled } from '../invariant.ts';
import { guestsOf, LEDGER, ledgerIn, migrationsOf } from '../moves.ts';
import type { State } from '../observer.ts';

/**
 * In the end every migration is over, every slot was given back, the ledger knows the newest limits, and guests say that
 * they are where they are.
 */
export function migrationsSettle(): Invariant {
  return {
    name: 'migrations-settle',
    unsettled: ({ state }) => [
      ...aboutMigrations(state),
      ...aboutLedger(state),
      ...guestsOf(state).flatMap((guest) => aboutGuest(guest)),
    ],
  };
}

function aboutMigrations(state: State): Unsettled[] {
  return migrationsOf(state)
    .filter((migration) => !isFinalMigration(migration))
    .map((migration) => ({ key: keyOf(migration), what: `is ${migration.status?.phase ?? 'in no phase'}` }));
}

function aboutLedger(state: State): Unsettled[] {
  const { bucket, key } = LEDGER;
  const ledger = ledgerIn(state.get(bucket, key));
  if (!ledger) return [];
  const unfinished = new Set(
    migrationsOf(state).flatMap((each) => (isFinalMigration(each) ? [] : [each.metadata.uid])),
  );
  const kept = [...ledger.holders.values()].filter(({ uid }) => !unfinished.has(uid));
  const versions = ([...state.list(CONFIGURATIONS)] as KubeVirt[]).map(({ metadata }) => metadata.resourceVersion);
  return [
    ...kept.map(({ members }) => ({ key, what: `${members[0]?.name} is over, and has not given back its slots` })),
    ...(versions.includes(ledger.limitsVersion) ? [] : [{ key, what: 'does not know the newest limits' }]),
  ];
}

function aboutGuest({ metadata, status }: VirtualMachineInstance): Unsettled[] {
  const { phase, nodeName, rightToRun, migrationState } = status ?? {};
  const key = `${metadata.namespace}/${metadata.name}`;
  if (phase !== 'Running') return [];
  const node = rightToRun?.holder?.node;
  const labels = metadata.labels ?? {};
  const found: string[] = [];
  if (nodeName !== node) found.push(`says that it is on ${nodeName}, and is on ${node}`);
  if (labels[NODE_NAME_LABEL] !== node) found.push(`has the label of ${labels[NODE_NAME_LABEL]}, and is on ${node}`);
  if (rightToRun?.successor) found.push(`has a successor on ${rightToRun.successor.node}, and moves no more`);
  if (migrationState?.migrationUid && migrationState.completed !== true) found.push('says that it moves');
  if (labels[TARGET_NODE_LABEL] !== undefined) found.push(`has the label of its target ${labels[TARGET_NODE_LABEL]}`);
  return found.map((what) => ({ key, what }));
}

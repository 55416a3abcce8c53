import { humanDuration } from '../../api/human-duration.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { Env } from '../../env/ports.ts';
import { unlessAborted } from '../../kube/abort.ts';
import type { Client } from '../../kube/client.ts';
import { findCondition } from '../../kube/conditions.ts';
import { virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { SharedInformers } from '../../kube/shared-informers.ts';
import { ownState } from '../../migration/phase/facts.ts';
import { UserError } from '../failure.ts';
import { failureRemedy } from '../why/failure-remedies.ts';
import { watchedMove } from './watched-move.ts';
import type { WatchView } from './watch-view.ts';

/** Follows one migration to its end. */

export interface WatchOptions {
  readonly client: Client;
  readonly env: Env;
  /** The migration that is meant: not one of the same name that comes later. */
  readonly migration: VirtualMachineInstanceMigration;
  /** The name of its guest. */
  readonly guest: string;
  readonly view: WatchView;
}

/** Shows how it goes, and answers how it ended, in a sentence. Rejects with UserError where the guest did not move. */
export async function watchMigration(options: WatchOptions, signal: AbortSignal): Promise<string> {
  const { client, env, migration, guest, view } = options;
  const { namespace = '', name = '', uid } = migration.metadata;
  const informers = new SharedInformers({ client, env });
  const named = (each: string) => ({ namespace, fieldSelector: `metadata.name=${each}` });
  const migrations = informers.of(virtualMachineInstanceMigrations, {}, named(name));
  const guests = informers.of(virtualMachineInstances, {}, named(guest));
  const ended = new AbortController();
  const following = informers.all().map((informer) => informer.run(ended.signal));
  const failed = Promise.all(following).then(() => new Promise<never>(() => undefined));
  try {
    await unlessAborted(Promise.race([Promise.all([migrations.synced, guests.synced]), failed]), signal);
    let wake = (): void => undefined;
    for (const informer of informers.all()) informer.onChange(() => wake());
    signal.addEventListener('abort', () => wake());
    for (;;) {
      signal.throwIfAborted();
      const changed = new Promise<void>((resolve) => (wake = resolve));
      const now = migrations.get(`${namespace}/${name}`);
      const own = guests.get(`${namespace}/${guest}`);
      if (now?.metadata.uid !== uid)
        throw new UserError(`the migration of ${guest} was called off; it goes on where it is`);
      if (now) view.show(watchedMove(now, own));
      if (now && isFinalMigration(now)) return outcomeOf(now, own, guest);
      await Promise.race([changed, failed]);
    }
  } finally {
    ended.abort();
    await Promise.allSettled(following);
  }
}

/** How it ended, in a sentence. Throws UserError where the guest did not move. */
export function outcomeOf(
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance | undefined,
  name: string,
): string {
  const { status } = migration;
  const state = ownState({ migration, guest }) ?? status?.migrationState;
  if (status?.phase !== 'Succeeded') {
    const condition = findCondition(status?.conditions, 'migrationFailed');
    const message = condition?.message ?? state?.failureReason ?? 'nobody said why';
    throw new UserError(
      `the migration of ${name} failed: ${message.replace(/\.$/, '')}; ${failureRemedy(condition?.reason)} (it goes on where it is)`,
    );
  }
  const tookMs = Date.parse(state?.endTimestamp ?? '') - Date.parse(state?.startTimestamp ?? '');
  const details = [
    ...(state?.downtimeMs === undefined ? [] : [`the guest stood still for ${state.downtimeMs} ms`]),
    ...(Number.isNaN(tookMs) ? [] : [`the copy took ${humanDuration(tookMs)}`]),
  ];
  const target = state?.targetNode ? ` to ${state.targetNode}` : '';
  return `VM ${name} was migrated${target}${details.length > 0 ? `: ${details.join(', ')}` : ''}`;
}

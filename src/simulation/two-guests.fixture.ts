import type { MigrationState } from '../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../api/kubevirt/virtual-machine-instance-migration.ts';
import { TARGET_NODE_LABEL } from '../api/kubevirt/well-known.ts';
import type { JsonObject } from '../api/meta.ts';
import { virtualMachineInstances as guests } from '../kube/kubevirt-resources.ts';
import { statusPatch } from '../kube/status-patch.ts';
import { applySource, applyTarget } from '../migration/halves/apply.ts';
import { parseSourceHalf, parseTargetHalf } from '../migration/halves/parse.ts';
import { sourceHalf, targetHalf } from '../migration/halves/project.ts';
import { launcherPods as pods } from '../node/guests/launcher-pod.ts';
import { nodes } from '../node/guests/out-of-service.ts';
import { SOURCE, TARGET, TwoNodes, type TwoNodesOptions } from './two-nodes.fixture.ts';
import { unending } from './world.ts';

const NAMESPACE = 'shop';
/** The guest that waits, and what is there of it once the other one has come. */
export const RECEIVER = 'web-there';

/**
 * A guest that runs on one node, and one that waits for it: two objects, with real agents on models of machines. The parts
 * of the controllers, and of what carries the halves of their migration to and fro, are the test's.
 */
export class TwoGuests extends TwoNodes {
  /** Whether nothing is carried between the two. */
  isCut = false;
  /** How often something is carried. */
  carriesEveryMs = 100;
  readonly #migrations: { source: VirtualMachineInstanceMigration; target: VirtualMachineInstanceMigration };

  constructor(options: TwoNodesOptions = {}) {
    super(options);
    const migration = (uid: string, vmName: string): VirtualMachineInstanceMigration => ({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { name: uid, namespace: NAMESPACE, uid },
      spec: { vmName },
    });
    this.#migrations = { source: migration('source-half', 'web'), target: migration('target-half', RECEIVER) };
  }

  receiver(): Promise<VirtualMachineInstance> {
    return this.during(this.client.get(guests, NAMESPACE, RECEIVER, unending()));
  }

  async patchReceiver(body: JsonObject, subresource?: string): Promise<void> {
    const options = subresource === undefined ? {} : { subresource };
    const patch = { type: 'merge', body } as const;
    await this.during(this.client.patch(guests, NAMESPACE, RECEIVER, patch, unending(), options));
  }

  /** The guest runs, the other one waits, and both halves are opened. */
  async open(): Promise<void> {
    await this.start();
    await this.runGuest();
    const { spec, metadata, status } = await this.guest();
    const domain = { ...spec.domain, firmware: { ...spec.domain.firmware, uuid: metadata.uid ?? '' } };
    const receiver = await this.create(guests, { metadata: { name: RECEIVER }, spec: { ...spec, domain } });
    const { holder, epoch } = status?.rightToRun ?? {};
    const source = { migrationUID: 'source-half', virtualMachineInstanceUID: metadata.uid, runner: holder, epoch };
    const target = { migrationUID: 'target-half', virtualMachineInstanceUID: receiver.metadata.uid };
    await this.patchGuest(
      { status: { migrationState: { migrationUid: 'source-half', sourceState: source } } as never },
      'status',
    );
    await this.patchReceiver(
      {
        status: { phase: 'WaitingForSync', machine: status?.machine, migrationState: { targetState: target } } as never,
      },
      'status',
    );
    await this.carry(() => this.#isDescribed());
  }

  /** Makes the target's pod, and hands both halves off to the agents. */
  async handOffAcross(migrationConfiguration: JsonObject = {}): Promise<void> {
    const { uid = '' } = (await this.receiver()).metadata;
    const reference = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: RECEIVER, uid };
    const pod = await this.create(pods, {
      metadata: { name: 'web-2', ownerReferences: [{ ...reference, controller: true }] },
      spec: { nodeName: TARGET, containers: [{ name: 'compute', image: 'launcher:1' }] },
    });
    this.notePod('web-2', pod.metadata.uid ?? '');
    await this.patchReceiver({ metadata: { labels: { [TARGET_NODE_LABEL]: TARGET } } });
    const migrationState = { targetNode: TARGET, targetPod: 'web-2', migrationConfiguration };
    const activePods = { [pod.metadata.uid ?? '']: TARGET };
    await this.patchReceiver({ status: { activePods, migrationState } }, 'status');
    await this.patchGuest({ status: { migrationState: { sourceNode: SOURCE, sourcePod: 'web-1' } } }, 'status');
  }

  /** Carries halves to and fro until the check holds. */
  async carry(check: () => Promise<boolean>, withinMs = 60_000): Promise<void> {
    const endMs = this.clock.elapsedMs + withinMs;
    while (!(await check())) {
      if (this.clock.elapsedMs > endMs) {
        const both = [await this.guest(), await this.receiver()].map(({ status }) => JSON.stringify(status));
        throw new Error(`it did not come to that:\n${this.trace.last(60).join('\n')}\n${both.join('\n')}`);
      }
      if (!this.isCut) await this.#carryOnce();
      await this.pass(this.carriesEveryMs);
    }
  }

  /** Whether the guest is at the target, and both objects say so. */
  async hasGone(): Promise<boolean> {
    const [here, there] = [(await this.guest()).status ?? {}, (await this.receiver()).status ?? {}];
    const isAway = here.rightToRun?.across === true && here.rightToRun.successor === undefined;
    return isAway && there.phase === 'Running' && there.migrationState?.completed === true;
  }

  async states(): Promise<readonly [MigrationState, MigrationState]> {
    const [here, there] = [await this.guest(), await this.receiver()];
    return [here.status?.migrationState ?? {}, there.status?.migrationState ?? {}];
  }

  async #isDescribed(): Promise<boolean> {
    const [, there] = await this.states();
    return there.sourceState?.volumes !== undefined && (there.sourceState.agentKeys ?? []).length > 0;
  }

  async #carryOnce(): Promise<void> {
    const { source, target } = this.#migrations;
    const [here, there] = [await this.guest(), await this.receiver()];
    const node = (name: string) => this.during(this.client.get(nodes, '', name, unending()));
    const told = sourceHalf({ migration: source, guest: here, node: await node(SOURCE) });
    const answered = targetHalf({ migration: target, guest: there, node: await node(TARGET) });
    const [ofSource, ofTarget] = [parseSourceHalf(overWire(told)), parseTargetHalf(overWire(answered))];
    if ('problem' in ofSource) throw new Error(`what the source says is not taken: ${ofSource.problem}`);
    if ('problem' in ofTarget) throw new Error(`what the target says is not taken: ${ofTarget.problem}`);
    await this.#write(there, applySource({ migration: target, guest: there }, ofSource.half));
    await this.#write(here, applyTarget({ migration: source, guest: here }, ofTarget.half));
  }

  async #write(guest: VirtualMachineInstance, fields: ReturnType<typeof applySource>): Promise<void> {
    const body = fields && statusPatch(guest, fields);
    if (!body) return;
    const patch = { type: 'merge', body } as const;
    const name = guest.metadata.name ?? '';
    // Whoever writes at the same time is heard first; the next turn carries what this one did not.
    await this.during(
      this.client.patch(guests, NAMESPACE, name, patch, unending(), { subresource: 'status' }).then(
        () => undefined,
        () => undefined,
      ),
    );
  }
}

function overWire(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

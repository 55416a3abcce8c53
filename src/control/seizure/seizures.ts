import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { formatTime } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer } from '../../kube/informer.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { type NodeWord, seize } from '../../migration/right-to-run/seize.ts';
import type { ControlContext } from '../context.ts';
import { nodes } from '../resources.ts';
import { isFinal } from '../vmi/phase.ts';

const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';
const WORKERS = 4;
/** How soon it is looked again when somebody else wrote at the same time. */
const RECHECK_MS = 1000;

/**
 * Takes the right to run guests from nodes that an admin declared out of service. Nothing else does that, however long a
 * node is silent: it may still run them.
 */
export class Seizures implements Service {
  readonly name = 'seizures';
  readonly #clock: Clock;
  readonly #client: Client;
  readonly #recorder: Pick<EventRecorder, 'event'>;
  readonly #guests: Informer<VirtualMachineInstance>;
  readonly #nodes: Informer<Node>;
  readonly #controller: Controller;

  constructor({ env, client, recorder, informers, metrics }: ControlContext) {
    this.#clock = env.clock;
    this.#client = client;
    this.#recorder = recorder;
    this.#guests = informers.of(virtualMachineInstances, { runners: runnersOf });
    this.#nodes = informers.of(nodes);
    this.#controller = new Controller({
      name: 'seizure-controller',
      env,
      workers: WORKERS,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      ...(metrics ? { metrics } : {}),
    });
    this.#guests.onChange(({ object }) => {
      if (runnersOf(object).some((name) => isOutOfService(this.#nodes.get(name))))
        this.#controller.enqueue(keyOf(object));
    });
    this.#nodes.onChange(({ object }) => {
      if (!isOutOfService(object)) return;
      for (const guest of this.#guests.byIndex('runners', object.metadata.name ?? ''))
        this.#controller.enqueue(keyOf(guest));
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | void> {
    const guest = this.#guests.get(key);
    const record = guest?.status?.rightToRun;
    if (!guest || !record) return;
    try {
      // Asked of the server, and after the guest was looked at: a node that serves again may have started it since, and
      // then the guest is not any more what it was.
      const words = await this.#words(record, signal);
      const [step] = seize(record, words).steps;
      if (step?.kind !== 'record') return;
      const body = statusPatch(guest, { ...this.#ended(guest), rightToRun: step.to });
      const { namespace = '', name = '' } = guest.metadata;
      if (!body) return;
      const patch = { type: 'merge', body } as const;
      await this.#client.patch(virtualMachineInstances, namespace, name, patch, signal, { subresource: 'status' });
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return;
      if (error instanceof ApiError && error.code === 409) return { requeueAfterMs: RECHECK_MS };
      throw error;
    }
    const message = `The right to run was taken from node ${record.holder?.node ?? ''}, which is out of service`;
    this.#recorder.event(guest, 'Warning', 'RightToRunSeized', message);
  }

  /** Its machine is gone with its node. */
  #ended(guest: VirtualMachineInstance): object {
    if (isFinal(guest)) return {};
    const transition = { phase: 'Failed', phaseTransitionTimestamp: formatTime(this.#clock.now()) };
    const before = guest.status?.phaseTransitionTimestamps ?? [];
    return { phase: 'Failed', phaseTransitionTimestamps: [...before, transition] };
  }

  async #words(record: RightToRun, signal: AbortSignal): Promise<NodeWord[]> {
    const words: NodeWord[] = [];
    for (const name of new Set([record.holder?.node, record.successor?.node])) {
      if (name === undefined) continue;
      const node = await this.#client.get(nodes, '', name, signal);
      words.push({
        uid: node.metadata.uid ?? '',
        isOutOfService: isOutOfService(node),
        isDeleted: false,
        isLeaseExpired: false,
        isConfirmed: false,
      });
    }
    return words;
  }
}

function runnersOf({ status }: VirtualMachineInstance): readonly string[] {
  const { holder, successor } = status?.rightToRun ?? {};
  return [...new Set([holder, successor].flatMap((runner) => (runner ? [runner.node] : [])))];
}

function isOutOfService(node: Node | undefined): boolean {
  return node?.spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE) === true;
}

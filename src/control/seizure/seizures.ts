import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import { formatTime } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer } from '../../kube/informer.ts';
import { virtualMachineInstances, virtualMachines } from '../../kube/kubevirt-resources.ts';
import { controllerOf } from '../../kube/owner.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { isOutOfService } from '../../migration/right-to-run/out-of-service.ts';
import { epochAcross } from '../../migration/right-to-run/attempt.ts';
import { type NodeWord, seize, seizeTarget } from '../../migration/right-to-run/seize.ts';
import type { ControlContext } from '../context.ts';
import { nodes } from '../resources.ts';
import { isFinal } from '../vmi/phase.ts';
import { answerOf, askedToRefuse, lostTarget } from './far-successor.ts';

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
    if (!guest) return;
    try {
      if (!record) return await this.#noteTaken(guest, signal);
      // Asked of the server, and after the guest was looked at: a node that serves again may have started it since, and
      // then the guest is not any more what it was.
      const words = await this.#words(ownNodesOf(record), signal);
      const { steps, refusal } = seize(record, words, answerOf(guest));
      const [step] = steps;
      if (step?.kind !== 'record') {
        if (refusal?.code === 'SuccessorUnsettled') await this.#write(guest, askedToRefuse(guest), signal);
        return;
      }
      const ended = isAway(step.to) ? {} : { ...this.#ended(guest), ...askedToRefuse(guest) };
      if (!(await this.#write(guest, { ...ended, rightToRun: step.to }, signal))) return;
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return;
      if (error instanceof ApiError && error.code === 409) return { requeueAfterMs: RECHECK_MS };
      throw error;
    }
    const message = `The right to run was taken from node ${record.holder?.node ?? ''}, which is out of service`;
    this.#recorder.event(guest, 'Warning', 'RightToRunSeized', message);
  }

  /** Writes for a target that is gone that it had taken its guest, as the source says; it is seized then. */
  async #noteTaken(guest: VirtualMachineInstance, signal: AbortSignal): Promise<void> {
    const lost = lostTarget(guest);
    if (!lost) return;
    const { namespace = '' } = guest.metadata;
    const owner = controllerOf(guest);
    const machine = owner && (await this.#client.find(virtualMachines, namespace, owner.name, signal));
    const remembered = machine?.metadata.uid === owner?.uid ? machine?.status?.rightToRun?.epoch : undefined;
    const words = await this.#words([lost.target.node], signal);
    const [step] = seizeTarget(lost.target, epochAcross(lost.sourceEpoch, remembered), words).steps;
    if (step?.kind === 'record') await this.#write(guest, { rightToRun: step.to }, signal);
  }

  /** Answers whether there was anything to write. */
  async #write(
    guest: VirtualMachineInstance,
    fields: Partial<VirtualMachineInstanceStatus>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const body = statusPatch(guest, fields);
    if (!body) return false;
    const { namespace = '', name = '' } = guest.metadata;
    const patch = { type: 'merge', body } as const;
    await this.#client.patch(virtualMachineInstances, namespace, name, patch, signal, { subresource: 'status' });
    return true;
  }

  /** Its machine is gone with its node. */
  #ended(guest: VirtualMachineInstance): Partial<VirtualMachineInstanceStatus> {
    if (isFinal(guest)) return {};
    const transition = { phase: 'Failed' as const, phaseTransitionTimestamp: formatTime(this.#clock.now()) };
    const before = guest.status?.phaseTransitionTimestamps ?? [];
    return { phase: 'Failed', phaseTransitionTimestamps: [...before, transition] };
  }

  async #words(names: readonly string[], signal: AbortSignal): Promise<NodeWord[]> {
    const words: NodeWord[] = [];
    for (const name of names) {
      const node = await this.#client.find(nodes, '', name, signal);
      if (!node) continue;
      words.push({ uid: node.metadata.uid ?? '', isOutOfService: isOutOfService(node) });
    }
    return words;
  }
}

function runnersOf(guest: VirtualMachineInstance): readonly string[] {
  const lost = lostTarget(guest);
  return lost ? [lost.target.node] : ownNodesOf(guest.status?.rightToRun);
}

/** Nodes by whose word something can be done about a record. Those of others may have the names of ours. */
function ownNodesOf(record: RightToRun | undefined): readonly string[] {
  const { holder, successor, across } = record ?? {};
  const own = across === true ? [successor ? holder : undefined] : [holder, successor];
  return [...new Set(own.flatMap((runner) => (runner ? [runner.node] : [])))];
}

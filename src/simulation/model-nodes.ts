import { unreachable } from '../api/unreachable.ts';
import type { Clock } from '../env/ports.ts';
import type { HostedModel } from '../hypervisor/model/hosted-model.ts';
import { ModelHost } from '../hypervisor/model/model-host.ts';
import { drawCommitFault, drawSyncMs, type FaultMix } from './fault-mix.ts';
import type { ObservedMachine } from './invariant.ts';
import { ModelDisk } from './model-disk.ts';
import type { ModelNode } from './model-node.ts';
import type { MachineStrike } from './plan.ts';
import type { PlantedBug } from './planted-bug.ts';
import { between, type Streams } from './streams.ts';
import type { Trace } from './trace.ts';

export interface ModelNodesOptions {
  readonly clock: Clock;
  readonly streams: Streams;
  readonly trace: Trace;
  /** As it is at any time. */
  readonly mix: () => FaultMix;
  /** Called whenever a machine comes or goes, or its guest begins, or ceases, to be executed. */
  readonly onChange: () => void;
  readonly bug: PlantedBug | undefined;
}

const ANSWER_MS_MAX = 20;
const START_MS_MAX = 500;
const BOOT_MS = { min: 500, max: 20_000 };
const SHUT_DOWN_MS_MAX = 20_000;
/** Machines fail to start as often as disks fail: both are of the same host. */
const STUBBORN_CHANCE = 0.2;

/** The hosts and disks of a run's nodes, and all machines that there ever were on them. */
export class ModelNodes {
  readonly #options: ModelNodesOptions;
  readonly #seen = new Map<HostedModel, string>();

  constructor(options: ModelNodesOptions) {
    this.#options = options;
  }

  /** A node that has never run. */
  newNode(name: string): ModelNode {
    const { clock, streams, mix, bug } = this.#options;
    const stream = (what: string) => streams.of(`host/${name}/${what}`);
    const [chance, latency, sync, faults, starts] = [
      stream('chance'),
      stream('latency'),
      stream('sync'),
      stream('faults'),
      stream('starts'),
    ];
    const random = bug?.spoilHostChance?.(chance) ?? chance;
    const host = new ModelHost({
      env: { clock, random },
      traits: {
        bootMs: between(chance, BOOT_MS.min, BOOT_MS.max),
        shutDownMs: chance.number() * SHUT_DOWN_MS_MAX,
        obeysPowerButton: chance.number() > STUBBORN_CHANCE,
      },
      latencyMs: () => latency.number() * ANSWER_MS_MAX,
      startMs: () => latency.number() * START_MS_MAX,
      startFault: () => (starts.number() < mix().disk.full ? 'the host has no memory left' : undefined),
      onChange: (model) => this.#changed(name, model),
    });
    const disk = new ModelDisk({
      clock,
      random: stream('tears'),
      delayMs: () => drawSyncMs(mix().disk, sync),
      fault: () => drawCommitFault(mix().disk, faults),
    });
    return { name, host, disk, spoilHypervisor: bug?.spoilHypervisor };
  }

  /** All machines that there ever were. */
  machines(): readonly ObservedMachine[] {
    const nowMs = this.#options.clock.now();
    return [...this.#seen].map(([model, node]) => ({
      node,
      guest: model.spec.name,
      podUID: model.run.instance,
      isAlive: model.end === undefined,
      isExecuting: model.isExecuting,
      said: model.guest.said(nowMs),
    }));
  }

  /** Something happens to one of the machines that there are. */
  strike(what: MachineStrike, victim: number, back: (callback: () => void) => void): void {
    const alive = [...this.#seen.keys()].filter(({ end }) => end === undefined);
    const model = alive[Math.floor(victim * alive.length)];
    switch (what) {
      case 'kill-machine':
        return model?.over({ reason: 'Killed', message: 'the model of a machine was killed', log: [] });
      case 'panic':
        return model?.panic();
      case 'power-off':
        return model?.shutDown();
      case 'silence-machine':
        if (!model) return;
        model.isSilent = true;
        return back(() => (model.isSilent = false));
      default:
        return unreachable(what);
    }
  }

  /** All machines answer again. */
  calm(): void {
    for (const model of this.#seen.keys()) model.isSilent = false;
  }

  #changed(node: string, model: HostedModel): void {
    const { trace, onChange } = this.#options;
    const { end, status, spec, run } = model;
    const what = !this.#seen.has(model) ? 'starts' : end ? `is gone (${end.reason}: ${end.message})` : `is ${status}`;
    this.#seen.set(model, node);
    trace.add(node, `the model of ${spec.name} for pod ${run.instance} ${what}`);
    onChange();
  }
}

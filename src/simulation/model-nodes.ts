import { unreachable } from '../api/unreachable.ts';
import type { Clock } from '../env/ports.ts';
import type { HostedModel } from '../hypervisor/model/hosted-model.ts';
import { ModelHost } from '../hypervisor/model/model-host.ts';
import { type LinkState, ModelNetwork } from '../hypervisor/model/model-network.ts';
import { AgentsChannel, agentKeyOf } from './agents-channel.ts';
import { drawCommitFault, drawSyncMs, type FaultMix } from './fault-mix.ts';
import type { ObservedMachine } from './invariant.ts';
import { ModelDisk } from './model-disk.ts';
import type { ModelNode } from './model-node.ts';
import type { MachineStrike } from './plan.ts';
import { clusterAt, nodeAt } from './places.ts';
import type { PlantedBug } from './planted-bug.ts';
import { between, betweenRatios, type Streams } from './streams.ts';
import type { Tracer } from './trace.ts';

export interface ModelNodesOptions {
  readonly clock: Clock;
  readonly streams: Streams;
  readonly trace: Tracer;
  /** What befalls the words of agents, as it is at any time. */
  readonly mix: () => FaultMix;
  /** Called whenever a machine comes or goes, or its guest begins, or ceases, to be executed. */
  readonly onChange: () => void;
  readonly bug: PlantedBug | undefined;
  /** Whether agents are known by keys, too. */
  readonly hasPairs?: boolean;
}

const ANSWER_MS_MAX = 20;
const START_MS_MAX = 500;
const BOOT_MS = { min: 500, max: 20_000 };
const SHUT_DOWN_MS_MAX = 20_000;
/** Machines fail to start as often as disks fail: both are of the same host. */
const STUBBORN_CHANCE = 0.2;

/** Between nodes so slow that a move takes its time, and so fast that it is over in a moment. */
const LINK_BYTES_PER_SECOND = { min: 2e6, max: 2e8 };
const DIRTY_BYTES_PER_SECOND = { min: 1e3, max: 1e8 };
const WORKING_SET_SHARE = { min: 0.001, max: 0.5 };
/** Disks that are copied in a moment, and disks that something happens to meanwhile. */
const DISK_BYTES = { min: 1e6, max: 5e8 };

/** The hosts and disks of a run's nodes, what lies between them, and all machines that there ever were on them. */
export class ModelNodes {
  /** By which agents reach each other. */
  readonly channel: AgentsChannel;
  readonly #options: ModelNodesOptions;
  readonly #network: ModelNetwork;
  readonly #places: string[] = [];
  readonly #seen = new Map<HostedModel, string>();
  readonly #struck = new Set<HostedModel>();

  constructor(options: ModelNodesOptions) {
    this.#options = options;
    const { clock, streams, trace, mix } = options;
    const { min, max } = LINK_BYTES_PER_SECOND;
    this.#network = new ModelNetwork(betweenRatios(streams.of('network'), min, max));
    const { spoilAnswer } = options.bug ?? {};
    this.channel = new AgentsChannel({ clock, random: streams.of('channel'), trace, mix, spoilAnswer });
  }

  /** A node that has never run, whose disk is as the mix of its cluster says. */
  newNode(place: string, mix: () => FaultMix): ModelNode {
    const { clock, streams, bug } = this.#options;
    const stream = (what: string) => streams.of(`host/${place}/${what}`);
    const [chance, latency, sync, faults, starts] = [
      stream('chance'),
      stream('latency'),
      stream('sync'),
      stream('faults'),
      stream('starts'),
    ];
    const random = bug?.spoilHostChance?.(chance) ?? chance;
    const memory = stream('memory');
    this.#places.push(place);
    const host = new ModelHost({
      env: { clock, random },
      traits: {
        bootMs: between(chance, BOOT_MS.min, BOOT_MS.max),
        shutDownMs: chance.number() * SHUT_DOWN_MS_MAX,
        obeysPowerButton: chance.number() > STUBBORN_CHANCE,
        workingSetShare: betweenRatios(memory, WORKING_SET_SHARE.min, WORKING_SET_SHARE.max),
        dirtyBytesPerSecond: betweenRatios(memory, DIRTY_BYTES_PER_SECOND.min, DIRTY_BYTES_PER_SECOND.max),
        diskBytes: Math.round(betweenRatios(stream('size of disks'), DISK_BYTES.min, DISK_BYTES.max)),
      },
      network: this.#network,
      latencyMs: () => latency.number() * ANSWER_MS_MAX,
      startMs: () => latency.number() * START_MS_MAX,
      startFault: () => (starts.number() < mix().disk.full ? 'the host has no memory left' : undefined),
      onChange: (model) => this.#changed(place, model),
    });
    const disk = new ModelDisk({
      clock,
      random: stream('tears'),
      delayMs: () => drawSyncMs(mix().disk, sync),
      fault: () => drawCommitFault(mix().disk, faults),
    });
    const keys = this.#options.hasPairs === true ? { keys: [agentKeyOf(place)] } : {};
    return { name: nodeAt(place), place, host, disk, ...keys, spoilHypervisor: bug?.spoilHypervisor };
  }

  /** All machines that there ever were. */
  machines(): readonly ObservedMachine[] {
    const nowMs = this.#options.clock.now();
    return [...this.#seen].map(([model, place]) => ({
      cluster: clusterAt(place),
      node: nodeAt(place),
      guest: model.spec.name,
      podUID: model.run.instance,
      isAlive: model.end === undefined,
      isExecuting: model.isExecuting,
      isSending: () => model.end === undefined && model.migration.isSending,
      bootId: model.guest.bootId,
      executedMs: model.guest.executedMs(nowMs),
      isStruck: this.#struck.has(model),
      hasGuestEnded: model.status === 'shut-down' || model.status === 'failed',
      said: model.guest.said(nowMs),
    }));
  }

  /** Something happens to one of the machines that there are. */
  strike(what: MachineStrike, victim: number, back: (callback: () => void) => void): void {
    const node = this.#places[Math.floor(victim * this.#places.length)] ?? '';
    const alive = [...this.#seen.keys()].filter(({ end }) => end === undefined);
    const model = alive[Math.floor(victim * alive.length)];
    switch (what) {
      case 'kill-machine':
        if (model) this.#struck.add(model);
        return model?.over({ reason: 'Killed', message: 'the model of a machine was killed', log: [] });
      case 'panic':
        return model?.panic();
      case 'power-off':
        return model?.shutDown();
      case 'silence-machine':
        if (!model) return;
        model.isSilent = true;
        return back(() => (model.isSilent = false));
      case 'cut-link':
      case 'silence-link':
        this.#setLink(node, what === 'cut-link' ? 'cut' : 'silent');
        return back(() => this.#setLink(node, 'up'));
      case 'cut-channel': {
        const others = this.#othersThan(node, victim);
        this.#options.trace.add(node, `does not reach ${others.join(', ')}`);
        const heals = others.map((other) => this.channel.cut(node, other));
        return back(() => {
          for (const heal of heals) heal();
        });
      }
      default:
        return unreachable(what);
    }
  }

  /** The power of a node fails. */
  struckDown(place: string): void {
    for (const [model, other] of this.#seen) if (other === place && model.end === undefined) this.#struck.add(model);
  }

  /** All machines answer again, and are reached. */
  calm(): void {
    for (const model of this.#seen.keys()) model.isSilent = false;
    for (const place of this.#places) this.#setLink(place, 'up');
    this.channel.heal();
  }

  #setLink(node: string, state: LinkState): void {
    const link = this.#network.link(node);
    if (link.state === state) return;
    this.#options.trace.add(node, `the way there is ${state}`);
    link.become(state);
  }

  /** One of the others, or all of them. */
  #othersThan(node: string, victim: number): readonly string[] {
    const others = this.#places.filter((place) => place !== node);
    const at = Math.floor(((victim * 1000) % 1) * 2 * others.length);
    return at < others.length ? others.slice(at, at + 1) : others;
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

import type { Client } from '../kube/client.ts';
import type { Component } from './component.ts';
import type { ModelNode } from './model-node.ts';
import type { ModelNodes } from './model-nodes.ts';
import type { State } from './observer.ts';
import { Operator } from './operator.ts';
import { placeOf } from './places.ts';
import type { ClusterStrikeName, Strike } from './plan.ts';
import type { SimulatedProcess } from './process.ts';
import type { SimulatedServer } from './server.ts';
import type { Tracer } from './trace.ts';
import type { VirtualClock } from './virtual-clock.ts';
import { unending, type World } from './world.ts';

/** What can happen to one cluster as a whole, or to something of it. */
export type ClusterStrike = Strike & { readonly what: ClusterStrikeName };

export interface ClusterStrikesOptions {
  /** Empty where there is only one. */
  readonly cluster: string;
  readonly clock: VirtualClock;
  readonly trace: Tracer;
  readonly server: SimulatedServer;
  readonly world: World;
  readonly state: State;
  readonly modelNodes: ModelNodes;
  /** All of them. */
  readonly components: readonly Component[];
  /** Those of them that are nodes. */
  readonly nodes: readonly Component[];
  /** What nodes with agents have besides them, by name. */
  readonly hosts: ReadonlyMap<string, ModelNode>;
  readonly webhooks: Component | undefined;
  /** The user's, once there is one. */
  readonly client: () => Client | undefined;
  readonly mayPause: (process: SimulatedProcess) => boolean;
}

const CLOCK_STEP_MS_MAX = 30_000;
/** Nodes that are given up are seen to sooner than others come back, so that all is settled in time. */
const NOTICED_SHARE = 0.2;

/** Faults that happen at certain times, to certain victims, as they befall one cluster. */
export class ClusterStrikes {
  readonly #options: ClusterStrikesOptions;
  /** Nodes that stay off until somebody has seen to them. */
  readonly #givenUp = new Set<string>();
  readonly #forever = unending();

  constructor(options: ClusterStrikesOptions) {
    this.#options = options;
  }

  strike({ what, victim, durationMs }: ClusterStrike): void {
    const { server, world, components, nodes, trace, clock, webhooks, mayPause } = this.#options;
    const pick = <T>(items: readonly T[]): T | undefined => items[Math.floor(victim * items.length)];
    const back = (callback: () => void): void => void clock.setTimer(callback, durationMs);
    switch (what) {
      case 'crash-server':
        return server.crash('struck');
      case 'kill':
        return pick(components)?.kill('by a strike');
      case 'partition': {
        const process = pick(world.processes);
        if (!process) return;
        trace.add(process.name, `is cut off for ${Math.round(durationMs)} ms`);
        process.partition();
        return back(() => process.heal());
      }
      case 'pause': {
        const process = pick(world.processes.filter((each) => mayPause(each)));
        if (!process) return;
        trace.add(process.name, `stands still for ${Math.round(durationMs)} ms`);
        return process.pause(durationMs);
      }
      case 'step-clock': {
        const process = pick(world.processes);
        if (process) process.clock.offsetMs = (durationMs % CLOCK_STEP_MS_MAX) - CLOCK_STEP_MS_MAX / 2;
        return;
      }
      case 'node-down': {
        const node = pick(nodes);
        if (!node) return;
        this.#turnOff(node);
        trace.add(node.name, `is down for ${Math.round(durationMs / 1000)} s`);
        return back(() => this.turnOn(node));
      }
      case 'node-lost': {
        const node = pick(nodes.filter(({ name }) => !this.#givenUp.has(name)));
        return node && this.#loseNode(node, victim, durationMs);
      }
      case 'webhooks-down':
        webhooks?.stop();
        return back(() => webhooks && this.turnOn(webhooks));
    }
  }

  /** Starts what does not run, unless it is a node that nobody has seen to yet. */
  turnOn(component: Component): void {
    if (!component.process && !this.#givenUp.has(component.name)) component.start();
  }

  /** The power fails, and everything on the node with it. */
  #turnOff(node: Component): void {
    const { cluster, modelNodes, hosts } = this.#options;
    node.stop();
    modelNodes.struckDown(placeOf(cluster, node.name));
    hosts.get(node.name)?.host.crash();
    hosts.get(node.name)?.disk.crash();
  }

  /** A node that somebody gives up: it may come back with another disk. */
  #loseNode(node: Component, victim: number, offMs: number): void {
    const { name } = node;
    const { clock, state, trace, hosts } = this.#options;
    const client = this.#options.client();
    if (!client) return;
    this.#turnOff(node);
    const hasNewDisk = (victim * 1000) % 1 < 0.5;
    trace.add(name, `is lost, and comes back with ${hasNewDisk ? 'an empty' : 'its old'} disk`);
    if (hasNewDisk) hosts.get(name)?.disk.replace();
    this.#givenUp.add(name);
    const operator = new Operator({ clock, client, state, trace, signal: this.#forever });
    void operator.giveUp(name, offMs * NOTICED_SHARE, () => {
      this.#givenUp.delete(name);
      this.turnOn(node);
    });
  }
}

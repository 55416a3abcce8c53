import { isAway } from '../api/kubevirt/right-to-run-transition.ts';
import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';
import { ApiError } from '../api/status.ts';
import { nodes } from '../cluster/resources.ts';
import { type Clock, sleep } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import { errorText } from '../kube/error-text.ts';
import type { Node, Taint } from '../migration/fit/objects.ts';
import { VMIS } from './buckets.ts';
import type { State } from './observer.ts';
import type { Tracer } from './trace.ts';

export interface OperatorOptions {
  readonly clock: Clock;
  readonly client: Client;
  readonly state: State;
  readonly trace: Tracer;
  readonly signal: AbortSignal;
}

const OUT_OF_SERVICE: Taint = { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' };
const RETRY_MS = 2000;
/** How long it takes somebody to notice that a machine is back. */
const NOTICE_MS = 30_000;

/**
 * A person who looks after the machines, and never lies: says that a node is out of service only when it is off, turns
 * it on again only when nobody counts on it any more, and takes the word back when it is on.
 */
export class Operator {
  readonly #options: OperatorOptions;

  constructor(options: OperatorOptions) {
    this.#options = options;
  }

  /** Gives up a node that is off; `turnOn` is called when it may come back. */
  async giveUp(name: string, offMs: number, turnOn: () => void): Promise<void> {
    const { clock, trace, signal } = this.#options;
    await sleep(clock, offMs, signal);
    await this.#until(() => this.#setTaint(name, true));
    trace.add('operator', `has said that ${name} is out of service`);
    await this.#until(() => Promise.resolve(!this.#isCountedOn(name)));
    turnOn();
    await sleep(clock, NOTICE_MS, signal);
    await this.#until(() => this.#setTaint(name, false));
    trace.add('operator', `has taken it back that ${name} is out of service`);
  }

  #isCountedOn(name: string): boolean {
    return [...this.#options.state.list(VMIS)].some((guest) => {
      const record = (guest as VirtualMachineInstance).status?.rightToRun;
      const { holder, successor, across } = record ?? {};
      // Who was to have it, as another guest, is on the same machine: nothing but that machine's word settles it.
      const isForItself = across === true && successor?.nodeUID === holder?.nodeUID;
      // The holder of a guest that went elsewhere may be a node of another cluster, of the same name.
      return holder?.node === name && !isAway(record) && !isForItself;
    });
  }

  async #setTaint(name: string, isOut: boolean): Promise<boolean> {
    const { client, signal } = this.#options;
    let node: Node;
    try {
      node = await client.get(nodes, '', name, signal);
    } catch (error) {
      // Of a node that was lost before it registered there is nothing to say.
      if (error instanceof ApiError && error.code === 404) return !this.#isCountedOn(name);
      throw error;
    }
    const others = (node.spec?.taints ?? []).filter(({ key }) => key !== OUT_OF_SERVICE.key);
    node.spec = { ...node.spec, taints: isOut ? [...others, OUT_OF_SERVICE] : others };
    await client.update(nodes, node, signal);
    return true;
  }

  /** Tries until it is so; people, too, meet servers that are down. */
  async #until(isDone: () => Promise<boolean>): Promise<void> {
    const { clock, trace, signal } = this.#options;
    for (;;) {
      try {
        if (await isDone()) return;
      } catch (error) {
        trace.add('operator', `tries again: ${errorText(error)}`);
      }
      await sleep(clock, RETRY_MS, signal);
    }
  }
}

import { errorMessage } from '../../api/error-message.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { ApiError } from '../../api/status.ts';
import { nodes, pods as allPods } from '../../cluster/resources.ts';
import { configurationOf } from '../../control/context.ts';
import { nodesOfGuest } from '../../control/evacuation/draining.ts';
import { guestKeysOf, uidsOf } from '../../control/migration/keys.ts';
import { type Env, sleep } from '../../env/ports.ts';
import { unlessAborted } from '../../kube/abort.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { keyOf } from '../../kube/resource.ts';
import { SharedInformers } from '../../kube/shared-informers.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { isThere, isUnasked, type MachineRow, rowOf, type SeenGuest } from './drained-machines.ts';
import { decidePod, launchedGuestUid, type PodRules } from './drained-pods.ts';
import type { DrainPicture, DrainView } from './drain-view.ts';

/** kubectl's. */
const EVICT_AGAIN_MS = 5000;
const EVICTIONS_MAX = 20;
/** Many things happen at once: they are looked at together. */
const GATHER_MS = 100;
/** How long nothing but what somebody has to help must be left before that is said: conditions come late, now and then. */
const HOPELESS_MS = 10_000;

export interface DrainOptions extends PodRules {
  readonly client: Client;
  readonly env: Env;
  readonly node: string;
  readonly view: DrainView;
  /** Told what was done, in kubectl's words. */
  readonly print: (line: string) => void;
}

/** How a drain ended: the node is empty, or goes no further without somebody. */
export type DrainResult =
  | { readonly kind: 'empty' }
  | { readonly kind: 'refused'; readonly pods: readonly { readonly pod: string; readonly why: string }[] }
  | { readonly kind: 'hopeless'; readonly rows: readonly MachineRow[] };

interface Attempt {
  readonly atMs: number;
  readonly isUnderWay: boolean;
  readonly refusal: string | undefined;
}

/**
 * Empties a node: it takes no more pods, and those that it has are evicted again and again until they have gone, as
 * `kubectl drain` does. Virtual machines are moved by that or stopped, as their strategies say; whoever was told once that
 * it has to leave is not told again.
 */
export class Drain {
  readonly #options: DrainOptions;
  readonly #informers: SharedInformers;
  readonly #pods;
  readonly #guests;
  readonly #migrations;
  readonly #configuration;
  /** Guests that were ever seen on the node, by UID. */
  readonly #seen = new Map<string, VirtualMachineInstance>();
  /** By UIDs of pods. */
  readonly #attempts = new Map<string, Attempt>();
  #hopelessSinceMs: number | undefined;
  #fatal: unknown;
  #wake: () => void = () => undefined;

  constructor(options: DrainOptions) {
    const { client, env, node } = options;
    this.#options = options;
    this.#informers = new SharedInformers({ client, env });
    this.#pods = this.#informers.of(allPods, { guest: guestUidsOf }, { fieldSelector: `spec.nodeName=${node}` });
    this.#guests = this.#informers.of(virtualMachineInstances, { onNode: nodesOfGuest, uid: uidsOf });
    this.#migrations = this.#informers.of(virtualMachineInstanceMigrations, { guest: guestKeysOf });
    this.#configuration = configurationOf(this.#informers);
  }

  /** Follows the cluster, empties the node, and answers how that ended. Rejects where it is not allowed to. */
  async run(signal: AbortSignal): Promise<DrainResult> {
    const ended = new AbortController();
    const following = this.#informers.all().map((informer) => informer.run(ended.signal));
    // They end when they are told to, or fail.
    const failed = Promise.all(following).then(() => new Promise<never>(() => undefined));
    const synced = Promise.all(this.#informers.all().map((informer) => informer.synced));
    const stop = (): void => this.#wake();
    signal.addEventListener('abort', stop);
    try {
      await unlessAborted(Promise.race([synced, failed]), signal);
      for (const informer of this.#informers.all()) informer.onChange(() => this.#wake());
      return await Promise.race([this.#empty(signal), failed]);
    } finally {
      signal.removeEventListener('abort', stop);
      ended.abort();
      await Promise.allSettled(following);
    }
  }

  async #empty(signal: AbortSignal): Promise<DrainResult> {
    const { client, env, node, view, print } = this.#options;
    const refused = this.#refused();
    if (refused.length > 0) return { kind: 'refused', pods: refused };
    const body = { spec: { unschedulable: true } };
    await client.patch(nodes, '', node, { type: 'merge', body }, signal);
    print(`node/${node} cordoned`);
    for (;;) {
      signal.throwIfAborted();
      if (this.#fatal !== undefined) throw this.#fatal;
      const picture = this.#look();
      view.show(picture);
      const result = this.#judge(picture, env.clock.now());
      if (result) return result;
      const changed = this.#change();
      this.#evictDue(signal);
      await changed;
      await sleep(env.clock, GATHER_MS, signal);
    }
  }

  /** Resolves when something has changed, or it is time to evict again. */
  #change(): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.env.clock.setTimer(() => this.#wake(), EVICT_AGAIN_MS);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  /** Pods that nobody has said may go. */
  #refused(): { readonly pod: string; readonly why: string }[] {
    return [...this.#pods.list()].flatMap((pod) => {
      const decision = decidePod(pod, this.#options);
      return decision.kind === 'refuse' ? [{ pod: keyOf(pod), why: decision.why }] : [];
    });
  }

  /** The node as it is. */
  #look(): DrainPicture {
    const { node } = this.#options;
    for (const guest of this.#guests.byIndex('onNode', node)) this.#seen.set(guest.metadata.uid ?? '', guest);
    const scene = { node, configuration: this.#configuration() };
    const rows = [...this.#seen.values()].map((last) => rowOf(this.#seenGuest(last), scene));
    const pods = this.#leaving()
      .filter((pod) => this.#guestIn(pod) === undefined)
      .map((pod) => ({ pod: keyOf(pod), refusal: this.#attempts.get(pod.metadata.uid ?? '')?.refusal }));
    return { rows, pods };
  }

  #seenGuest(last: VirtualMachineInstance): SeenGuest {
    const key = keyOf(last);
    const pod = this.#pods.byIndex('guest', last.metadata.uid ?? '').find(isAlive);
    return {
      last,
      now: this.#guests.get(key),
      migrations: this.#migrations.byIndex('guest', key),
      pod,
      refusal: this.#attempts.get(pod?.metadata.uid ?? '')?.refusal,
    };
  }

  /** Pods that have to go. */
  #leaving(): Pod[] {
    return [...this.#pods.list()].filter((pod) => decidePod(pod, this.#options).kind === 'evict');
  }

  /** The guest that is on the node in this pod, as far as anybody knows. */
  #guestIn(pod: Pod): VirtualMachineInstance | undefined {
    const uid = launchedGuestUid(pod);
    if (uid === undefined) return undefined;
    const [guest] = this.#guests.byIndex('uid', uid);
    return guest && nodesOfGuest(guest).includes(this.#options.node) ? guest : undefined;
  }

  #judge(picture: DrainPicture, nowMs: number): DrainResult | undefined {
    const there = picture.rows.filter(isThere);
    if (there.length === 0 && picture.pods.length === 0) return { kind: 'empty' };
    const isHopeless = picture.pods.length === 0 && there.every(({ remedy }) => remedy !== undefined);
    this.#hopelessSinceMs = isHopeless ? (this.#hopelessSinceMs ?? nowMs) : undefined;
    if (this.#hopelessSinceMs === undefined || nowMs - this.#hopelessSinceMs < HOPELESS_MS) return undefined;
    return { kind: 'hopeless', rows: there };
  }

  #evictDue(signal: AbortSignal): void {
    const nowMs = this.#options.env.clock.now();
    let free = EVICTIONS_MAX - [...this.#attempts.values()].filter(({ isUnderWay }) => isUnderWay).length;
    for (const pod of this.#leaving()) {
      if (free <= 0) return;
      const last = this.#attempts.get(pod.metadata.uid ?? '');
      const isDue = !last || (!last.isUnderWay && nowMs - last.atMs >= EVICT_AGAIN_MS);
      if (!isDue || !isUnasked({ now: this.#guestIn(pod), pod })) continue;
      free--;
      void this.#evict(pod, signal);
    }
  }

  async #evict(pod: Pod, signal: AbortSignal): Promise<void> {
    const { client, env } = this.#options;
    const { uid = '', namespace = '', name = '' } = pod.metadata;
    const note = (isUnderWay: boolean, refusal: string | undefined): void =>
      void this.#attempts.set(uid, { atMs: env.clock.now(), isUnderWay, refusal });
    note(true, this.#attempts.get(uid)?.refusal);
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace } };
    try {
      await client.post(allPods, namespace, name, 'eviction', eviction, signal);
      note(false, undefined);
    } catch (error) {
      // What is gone needs no eviction, and what is refused is asked for again.
      const isGone = error instanceof ApiError && error.code === 404;
      if (error instanceof ApiError && error.code === 403) this.#fatal = error;
      note(false, isGone ? undefined : refusalOf(error));
    }
    this.#wake();
  }
}

function guestUidsOf(pod: Pod): readonly string[] {
  const uid = launchedGuestUid(pod);
  return uid === undefined ? [] : [uid];
}

function isAlive({ status }: Pod): boolean {
  return status?.phase !== 'Succeeded' && status?.phase !== 'Failed';
}

/** What was answered, without what API servers put before the words of webhooks. */
function refusalOf(error: unknown): string {
  return errorMessage(error).replace(/^admission webhook "[^"]*" denied the request: /, '');
}

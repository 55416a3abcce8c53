import { expect } from 'vitest';
import type { Anything } from './api.ts';
import { eventually } from './eventually.ts';
import type { LastWords } from './last-words.ts';
import type { VirtualMachines } from './virtual-machines.ts';

const MERGE = { 'content-type': 'application/merge-patch+json' };
const RESTORE = 'kubevirt.io/restore-run-strategy';
const HOST = 'kubernetes.io/hostname';
const KIND = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceMigration' };
/** How long anything may take that is under way, on a machine under load. */
const PATIENCE_MS = 90_000;
/** The namespace that machines are made in. */
export const HOME = 'default';

/** The gate behind which halves of migrations are. */
export const PAIRS_GATE = 'DecentralizedLiveMigration';

/** Two migrations that are one. */
interface Pair {
  readonly name: string;
  readonly source: Half;
  readonly target: Half;
  /** Which of them is deleted to call the pair off: by turns. */
  readonly cancelled: Half;
}

interface Half {
  readonly namespace: string;
  readonly migration: string;
}

/**
 * Moves of guests by two migrations each, in one cluster: from one namespace to another and back, or within one. Whoever asks
 * for a move knows it by its source's half.
 */
export class PairedMoves {
  readonly #host: VirtualMachines;
  readonly #elsewhere: string;
  readonly #lastWords: LastWords;
  readonly #pairs = new Map<string, Pair>();

  private constructor(host: VirtualMachines, elsewhere: string, lastWords: LastWords) {
    this.#host = host;
    this.#elsewhere = elsewhere;
    this.#lastWords = lastWords;
  }

  /** Moves between the namespace that machines are made in and this one, which may be the same. */
  static async between(host: VirtualMachines, elsewhere: string, lastWords: LastWords): Promise<PairedMoves> {
    if (elsewhere !== HOME) await host.kubectl.ok(`create namespace ${elsewhere}`);
    return new PairedMoves(host, elsewhere, lastWords);
  }

  /** Whether this is a move by two migrations. */
  knows(migration: string): boolean {
    return this.#pairs.has(migration);
  }

  /** The namespace of the half that is known by this name. */
  namespaceOf(migration: string): string | undefined {
    return this.#pairs.get(migration)?.source.namespace;
  }

  /** Where a guest goes next, or is going. */
  targetNamespaceOf(name: string): string {
    return this.#host.namespaceOf(name) === HOME ? this.#elsewhere : HOME;
  }

  /** Makes both halves, and before them the machine that waits; the guest goes to another node. */
  async ask(name: string, migration: string, spec: Anything, node: string): Promise<void> {
    const [from, to] = [this.#host.namespaceOf(name), this.targetNamespaceOf(name)];
    if (to !== from) await this.#awaits(name, from, to);
    const source = { namespace: from, migration };
    const target = { namespace: to, migration: `${migration}-there` };
    const cancelled = this.#pairs.size % 2 === 0 ? source : target;
    this.#pairs.set(migration, { name, source, target, cancelled });
    const addedNodeSelector = { ...(await this.#another(node)), ...spec.addedNodeSelector };
    const key = `${migration}-key`;
    await this.#create(target, { ...spec, vmiName: name, receive: { key }, addedNodeSelector });
    await this.#create(source, {
      ...spec,
      vmiName: name,
      sendTo: { key, connectURL: await this.#host.synchronizationAddress() },
    });
  }

  /** Deletes one of the halves. */
  async cancel(migration: string): Promise<void> {
    const { cancelled } = this.#of(migration);
    await this.#host.api.request('DELETE', pathOf(cancelled));
  }

  /** Waits until the other half has ended as its source did; where the guest went over, that is where it is from now on. */
  async endsAlike(migration: string, phase: string): Promise<void> {
    const { name, target } = this.#of(migration);
    await eventually(async () => {
      const half = (await this.#find(target)) ?? this.#lastWords.of(target.namespace, target.migration);
      expect(half?.status?.phase, JSON.stringify(half?.status)).toBe(phase);
    }, PATIENCE_MS);
    if (phase === 'Succeeded') this.#host.isIn(name, target.namespace);
  }

  /** Waits until a pair that was called off, or whose guest was removed, is over like this, and not all of it is there. */
  async isGone(migration: string, phase: 'Failed' | 'Succeeded'): Promise<void> {
    const { name, source, target } = this.#of(migration);
    await eventually(async () => {
      const halves = [await this.#find(source), await this.#find(target)].filter((half) => half !== undefined);
      for (const { status } of halves) expect(status?.phase, JSON.stringify(status)).toBe(phase);
      expect(halves.length).toBeLessThan(2);
    }, PATIENCE_MS);
    if (phase === 'Succeeded') this.#host.isIn(name, target.namespace);
  }

  /** The half that a pair's guest comes by. */
  async targetOf(migration: string): Promise<Anything> {
    return this.#find(this.#of(migration).target);
  }

  /** The machine waits; where there is none yet, it is made like the other one, with blank disks. */
  async #awaits(name: string, from: string, to: string): Promise<void> {
    const { api } = this.#host;
    const annotations = { [RESTORE]: 'Always' };
    const path = `/apis/kubevirt.io/v1/namespaces/${to}/virtualmachines`;
    const found = await api.request('GET', `${path}/${name}`);
    if (found.status === 404) {
      const { spec } = (await this.#host.machine(name)) as Anything;
      for (const { persistentVolumeClaim: claim } of spec.template.spec.volumes ?? [])
        if (claim) await this.#copyClaim(claim.claimName, from, to);
      const kind = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' };
      const body = { ...kind, metadata: { name, annotations }, spec: { ...spec, runStrategy: 'WaitAsReceiver' } };
      (await api.request('POST', path, { body })).expect(201);
    } else if (found.expect(200).json.spec.runStrategy !== 'WaitAsReceiver') {
      const body = { metadata: { annotations }, spec: { runStrategy: 'WaitAsReceiver' } };
      (await api.request('PATCH', `${path}/${name}`, { body, headers: MERGE })).expect(200);
    }
    await eventually(async () => {
      const guest = await api.request('GET', `/apis/kubevirt.io/v1/namespaces/${to}/virtualmachineinstances/${name}`);
      expect(guest.expect(200).json.status?.phase).toBe('WaitingForSync');
    }, PATIENCE_MS);
  }

  async #copyClaim(name: string, from: string, to: string): Promise<void> {
    const path = (namespace: string): string => `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
    const { api } = this.#host;
    const { storageClassName, accessModes, resources } = (await api.request('GET', `${path(from)}/${name}`)).expect(200)
      .json.spec;
    const spec = { storageClassName, accessModes, resources };
    const body = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name }, spec };
    (await api.request('POST', path(to), { body })).expect(201);
  }

  /** A node other than this one: halves of two guests would do with the same. */
  async #another(node: string): Promise<object> {
    const { items } = (await this.#host.api.request('GET', '/api/v1/nodes')).expect(200).json;
    const other = items.find(({ metadata }: Anything) => metadata.name !== node);
    return other ? { [HOST]: other.metadata.labels[HOST] } : {};
  }

  async #create(half: Half, spec: object): Promise<void> {
    const body = { ...KIND, metadata: { name: half.migration }, spec };
    (await this.#host.api.request('POST', pathOf({ ...half, migration: '' }), { body })).expect(201);
  }

  async #find(half: Half): Promise<Anything> {
    const answer = await this.#host.api.request('GET', pathOf(half));
    return answer.status === 404 ? undefined : answer.expect(200).json;
  }

  #of(migration: string): Pair {
    const pair = this.#pairs.get(migration);
    if (!pair) throw new Error(`${migration} is no half of a pair`);
    return pair;
  }
}

function pathOf({ namespace, migration }: Half): string {
  const path = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachineinstancemigrations`;
  return migration === '' ? path : `${path}/${migration}`;
}

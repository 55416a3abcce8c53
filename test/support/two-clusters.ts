import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { SYNCHRONIZATION_FINALIZER } from '../../src/api/kubevirt/well-known.ts';
import type { Anything } from './api.ts';
import { eventually } from './eventually.ts';
import { virtualMachine } from './guest-manifests.ts';
import { assertNeverDoubled } from './guests.ts';
import { needsOwnCluster } from './kubernetes/wanted.ts';
import { MovingGuests, type Side } from './moving-guests.ts';
import type { Stay } from './one-life.ts';
import { Wire } from './wire.ts';

const MACHINES = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const MERGE = { 'content-type': 'application/merge-patch+json' };
const RESTORE = 'kubevirt.io/restore-run-strategy';
const PATIENCE_MS = 120_000;

/** A guest that goes from one cluster to the other. */
export interface Trip {
  readonly name: string;
  readonly from: MovingGuests;
  readonly to: MovingGuests;
  readonly key: string;
}

/** The names of the two migrations of a trip. */
export interface Halves {
  readonly source: string;
  readonly target: string;
}

/** Two whole clusters with real guests, which reach each other by a wire alone. */
export class TwoClusters {
  readonly wire: Wire;
  readonly east: MovingGuests;
  readonly west: MovingGuests;
  #trips = 0;

  private constructor(wire: Wire, east: MovingGuests, west: MovingGuests) {
    this.wire = wire;
    this.east = east;
    this.west = west;
  }

  /** Starts both, with one node each unless said otherwise; their guests may go from one to the other. */
  static async start({ nodes = 1, linux = false } = {}): Promise<TwoClusters> {
    needsOwnCluster('it is about two clusters, and one is given');
    const wire = await Wire.lay();
    const [east, west] = await Promise.all(
      [wire.east, wire.west].map((place) => MovingGuests.start({ nodes, linux, place })),
    );
    if (!east || !west) throw new Error('there are not two clusters');
    return new TwoClusters(wire, east, west);
  }

  async stop(): Promise<void> {
    for (const each of this.both) await each.stop();
    this.wire.remove();
  }

  get both(): readonly MovingGuests[] {
    return [this.east, this.west];
  }

  other(cluster: MovingGuests): MovingGuests {
    return cluster === this.east ? this.west : this.east;
  }

  nameOf(cluster: MovingGuests): string {
    return cluster === this.east ? 'east' : 'west';
  }

  /** Each is told to trust the other, as users do that. */
  async exchangeTrust(): Promise<void> {
    for (const each of this.both) await this.trust(each, this.other(each));
  }

  /** One cluster is told to trust another. */
  async trust(one: MovingGuests, other: MovingGuests): Promise<void> {
    const name = this.nameOf(other);
    const exported = await other.host.cli('trust', 'export', '--name', name);
    const path = join(one.host.godwit.directory, `${name}.yaml`);
    writeFileSync(path, exported);
    await one.host.cli('trust', 'import', path);
  }

  /** Writes a kubeconfig with both clusters, as the contexts `east` and `west`, for whoever reaches both: the test does. */
  writeKubeconfig(path: string): void {
    const named = this.both.map((cluster) => ({ name: this.nameOf(cluster), ...cluster.host.godwit.access() }));
    const encode = (text: string): string => Buffer.from(text).toString('base64');
    const kubeconfig = {
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'east',
      contexts: named.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
      clusters: named.map(({ name, url, ca }) => ({
        name,
        cluster: { server: url, 'certificate-authority-data': encode(ca) },
      })),
      users: named.map(({ name, certificate, key }) => ({
        name,
        user: { 'client-certificate-data': encode(certificate), 'client-key-data': encode(key) },
      })),
    };
    writeFileSync(path, JSON.stringify(kubeconfig));
  }

  /** A guest that runs in one cluster is to go to the other, under a key that nobody else has. */
  trip(name: string, from: MovingGuests): Trip {
    return { name, from, to: this.other(from), key: `${name}-${this.#trips++}` };
  }

  /** Makes the machine that a guest comes to; it waits. */
  async receiver({ name, from, to }: Trip, spec: object, { labels = {}, more = {} } = {}): Promise<Anything> {
    const template = { metadata: { labels: { app: name, ...labels } }, spec };
    const machine = virtualMachine(name, spec, { runStrategy: 'WaitAsReceiver', ...more }) as Anything;
    machine.metadata = {
      ...machine.metadata,
      namespace: to.host.namespaceOf(name),
      annotations: { [RESTORE]: 'Always' },
    };
    await to.host.create({ ...machine, spec: { ...machine.spec, template } });
    to.awaits(name, from.bootOf(name));
    return to.host.reaches(name, 'WaitingForSync');
  }

  /** The machine that a guest has left is to have it back. */
  async receiverAgain({ name, from, to }: Trip): Promise<Anything> {
    const body = { metadata: { annotations: { [RESTORE]: 'Always' } }, spec: { runStrategy: 'WaitAsReceiver' } };
    (await to.host.api.request('PATCH', `${MACHINES}/${name}`, { body, headers: MERGE })).expect(200);
    to.awaits(name, from.bootOf(name));
    return to.host.reaches(name, 'WaitingForSync');
  }

  /** Makes the half where the guest is, which is told where to go: by what the other cluster says, unless that is given. */
  async send({ name, from, to, key }: Trip, address?: string): Promise<string> {
    const connectURL = address ?? (await to.host.synchronizationAddress());
    return from.ask(name, { sendTo: { key, connectURL } });
  }

  /** Makes the half where it goes. */
  receive({ name, to, key }: Trip): Promise<string> {
    return to.ask(name, { receive: { key } });
  }

  async begin(trip: Trip): Promise<Halves> {
    return { target: await this.receive(trip), source: await this.send(trip) };
  }

  /** The pod that a guest goes to, once there is one. */
  async targetOf({ name, to }: Trip): Promise<Side> {
    return eventually(async () => {
      const { targetPod, targetNode } = (await to.host.guest(name))?.status?.migrationState ?? {};
      const pods = `/api/v1/namespaces/${to.host.namespaceOf(name)}/pods`;
      const answer = await to.host.api.request('GET', `${pods}/${targetPod}`);
      return { node: targetNode, podUID: answer.expect(200).json.metadata.uid };
    }, PATIENCE_MS);
  }

  /** Waits until neither half waits for the other any more. */
  async areLetGo({ from, to }: Trip, { source, target }: Halves): Promise<void> {
    await eventually(async () => {
      for (const half of [await from.migration(source), await to.migration(target)])
        expect(half?.metadata.finalizers ?? [], JSON.stringify(half)).not.toContain(SYNCHRONIZATION_FINALIZER);
    }, PATIENCE_MS);
  }

  /** Waits until both halves are over; they have ended alike. Answers how. */
  async ends({ from, to }: Trip, { source, target }: Halves): Promise<'Succeeded' | 'Failed'> {
    const ended = await eventually(() => Promise.all([from.ends(source), to.ends(target)]), PATIENCE_MS);
    const [one, other] = ended.map(({ status }) => status);
    expect(one.phase, JSON.stringify([one, other])).toBe(other.phase);
    return one.phase;
  }

  /** Waits until a guest has come, whole, and left nothing running behind. */
  async arrives(trip: Trip, halves: Halves): Promise<Stay[]> {
    expect(await this.ends(trip, halves)).toBe('Succeeded');
    await trip.from.host.isSaidToBe(trip.name, 'Stopped');
    return this.isWhole(trip.to, trip.name);
  }

  /** The guest lives there, is the one that was started, and never ran in two machines at once, in whichever cluster. */
  isWhole(where: MovingGuests, name: string): Promise<Stay[]> {
    return where.isWhole(name, () => this.logs());
  }

  /** Everything that any guest has said, by the pod that ran it. */
  logs(): Map<string, string> {
    return new Map(this.both.flatMap(({ host }) => [...host.logs()]));
  }

  assertNeverDoubled(): void {
    assertNeverDoubled([...this.logs().values()]);
  }

  /** How many machines there are. */
  get qemuCount(): number {
    return this.both.reduce((sum, { host }) => sum + host.qemus().length, 0);
  }
}

import { expect } from 'vitest';
import type { Anything } from './api.ts';
import { eventually } from './eventually.ts';
import { MovingGuests } from './moving-guests.ts';
import { conditionOf } from './virtual-machines.ts';

const PODS = '/api/v1/namespaces/default/pods';
const MERGE = { 'content-type': 'application/merge-patch+json' };
const STRATEGIC = { 'content-type': 'application/strategic-merge-patch+json' };
const PATIENCE_MS = 90_000;

/** The reasons that are given to pods by schedulers and by taint managers. */
export type DisruptionReason = 'PreemptionByScheduler' | 'DeletionByTaintManager';

/** Guests whose launcher pods are deleted under them, as far as the API of the cluster goes. */
export class DisruptedGuests {
  readonly guests: MovingGuests;

  private constructor(guests: MovingGuests) {
    this.guests = guests;
  }

  static async start(options: { readonly nodes: number }): Promise<DisruptedGuests> {
    return new DisruptedGuests(await MovingGuests.start(options));
  }

  stop(): Promise<void> {
    return this.guests.stop();
  }

  /** The pod that executes the guest. */
  async launcher(name: string): Promise<Anything> {
    const { podUID } = await this.guests.holder(name);
    const { items } = (await this.guests.host.api.request('GET', PODS)).expect(200).json;
    return items.find(({ metadata }: Anything) => metadata.uid === podUID);
  }

  /** The pod, or undefined. */
  async pod(name: string): Promise<Anything> {
    const answer = await this.guests.host.api.request('GET', `${PODS}/${name}`);
    return answer.status === 404 ? undefined : answer.expect(200).json;
  }

  async createPod(name: string, spec: object): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec };
    (await this.guests.host.api.request('POST', PODS, { body })).expect(201);
  }

  async deletePod(name: string, options: object = {}): Promise<Anything> {
    const answer = await this.guests.host.api.request('DELETE', `${PODS}/${name}`, { body: options });
    return answer.json;
  }

  /** Tells a pod why it is about to be deleted, as whoever then deletes it does. */
  async tell(pod: Anything, reason: DisruptionReason): Promise<void> {
    const condition = { type: 'DisruptionTarget', status: 'True', reason, lastTransitionTime: now() };
    const body = { status: { conditions: [condition] } };
    const path = `${PODS}/${pod.metadata.name}/status`;
    (await this.guests.host.api.request('PATCH', path, { body, headers: STRATEGIC })).expect(200);
  }

  /** Has it that a pod was told so long ago. */
  async backdate(name: string, seconds: number): Promise<void> {
    const { metadata } = await this.pod(name);
    const time = now(-seconds);
    const managedFields = metadata.managedFields.map((entry: Anything) => ({ ...entry, time }));
    // A server that sees nothing but times change leaves them as they were.
    const body = { metadata: { managedFields, annotations: { 'test.godwit.dev/backdated': time } } };
    (await this.guests.host.api.request('PATCH', `${PODS}/${name}`, { body, headers: MERGE })).expect(200);
  }

  /** Disrupts the pod of a guest by hand. Answers the pod as it is from then on. */
  async disrupt(name: string, reason: DisruptionReason = 'PreemptionByScheduler'): Promise<Anything> {
    const pod = await this.launcher(name);
    await this.tell(pod, reason);
    return this.deletePod(pod.metadata.name);
  }

  /** All migrations of the guest. */
  async migrationsOf(name: string): Promise<Anything[]> {
    return (await this.guests.migrations()).filter(({ spec }) => spec.vmiName === name);
  }

  /** Waits until the guest is marked for this, and answers what it says of it. */
  async isMarked(name: string, cause: string): Promise<Anything> {
    return eventually(async () => {
      const { status } = await this.guests.host.guest(name);
      const found = status.evacuationCauses?.find((each: Anything) => each.cause === cause);
      expect(found, JSON.stringify(status)).toBeDefined();
      expect(status.evacuationNodeName).toBe(status.nodeName);
      return found;
    }, PATIENCE_MS);
  }

  /** Waits until the guest of this pod has moved away from it, whole, and nothing of that is left. */
  async hasMoved(name: string, from: Anything, cause: string): Promise<Anything> {
    await eventually(async () => {
      expect((await this.guests.holder(name)).podUID).not.toBe(from.metadata.uid);
    }, PATIENCE_MS);
    const stays = await this.guests.isWhole(name);
    expect(stays).toHaveLength(2);
    await eventually(async () => expect(await this.pod(from.metadata.name)).toBeUndefined(), PATIENCE_MS);
    return eventually(async () => {
      const [migration, ...others] = await this.migrationsOf(name);
      expect(others).toEqual([]);
      expect(migration.status.phase).toBe('Succeeded');
      expect(migration.spec).toMatchObject({ cause, priority: 'system-critical' });
      const { status } = await this.guests.host.guest(name);
      expect(status.evacuationNodeName).toBeUndefined();
      expect(status.evacuationCauses).toBeUndefined();
      return migration;
    }, PATIENCE_MS);
  }

  /** Waits until the guest of this object has ended, and answers it as it was last seen. */
  async ends(guest: Anything): Promise<void> {
    await eventually(async () => {
      const { metadata, status } = (await this.guests.host.guest(guest.metadata.name)) ?? {};
      const isOver = metadata?.uid !== guest.metadata.uid || ['Succeeded', 'Failed'].includes(status.phase);
      expect(isOver, JSON.stringify(status)).toBe(true);
    }, PATIENCE_MS);
  }

  /** When people were told for the first time, by its reason; undefined where they were not. */
  async toldMs(name: string, wanted: string): Promise<number | undefined> {
    const path = '/api/v1/namespaces/default/events';
    const { items } = (await this.guests.host.api.request('GET', path)).expect(200).json;
    const found = items.find(({ involvedObject, reason }: Anything) => {
      return involvedObject.name === name && reason === wanted;
    });
    return found && Date.parse(found.firstTimestamp ?? found.eventTime);
  }

  /** Waits until people were told. */
  told(name: string, reason: string): Promise<number> {
    return eventually(async () => {
      const atMs = await this.toldMs(name, reason);
      if (atMs === undefined) throw new Error(`${name} was not told ${reason}`);
      return atMs;
    }, PATIENCE_MS);
  }

  /** Waits until the guest can, or cannot, move. */
  async isMigratable(name: string, status: 'True' | 'False'): Promise<void> {
    await eventually(async () => {
      expect(conditionOf(await this.guests.host.guest(name), 'LiveMigratable')?.status).toBe(status);
    }, PATIENCE_MS);
  }
}

function now(seconds = 0): string {
  return new Date(Date.now() + seconds * 1000).toISOString().replace(/\.\d+/, '');
}

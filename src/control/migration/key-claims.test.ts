import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import { ApiError } from '../../api/status.ts';
import { virtualMachineInstanceMigrations as migrations } from '../../kube/kubevirt-resources.ts';
import { leaseResource } from '../../kube/leader-lease.ts';
import { ControlScene } from '../control.fixture.ts';
import { KeyClaims } from './key-claims.ts';

const scene = new ControlScene();
let count = 0;

beforeAll(() => scene.start());
afterAll(() => scene.stop());

const half = (halves: object): Promise<VirtualMachineInstanceMigration> =>
  scene.create(migrations, { metadata: { name: `half-${++count}` }, spec: { vmName: 'web', ...halves } });
const sending = (key: string) => half({ sendTo: { key, connectURL: 'there:1' } });
const claims = () => new KeyClaims(scene.client);
const leases = async (): Promise<number> =>
  (await scene.client.list(leaseResource, { namespace: SYSTEM_NAMESPACE }, scene.signal)).items.length;

/** Whoever meets a conflict looks again. */
async function isTaken(by: KeyClaims, migration: VirtualMachineInstanceMigration): Promise<boolean> {
  try {
    return await by.isTaken(migration, scene.signal);
  } catch (error) {
    if (error instanceof ApiError && error.code === 409) return isTaken(by, migration);
    throw error;
  }
}

describe('a key', () => {
  it('is of one half of each role, and of nobody else, whoever asks', async () => {
    const [one, two] = [await sending('a'), await sending('a')];
    const receiving = await half({ receive: { key: 'a' } });
    expect(await isTaken(claims(), one)).toBe(false);
    expect(await isTaken(claims(), two)).toBe(true);
    expect(await isTaken(claims(), receiving)).toBe(false);
    expect(await isTaken(claims(), one)).toBe(false);
    for (const each of [one, two, receiving]) await claims().release(each, scene.signal);
    expect(await leases()).toBe(0);
  });

  it('goes to one of those who ask at the very same instant', async () => {
    const all = await Promise.all([1, 2, 3, 4].map(() => sending('b')));
    const taken = await Promise.all(all.map((each) => isTaken(claims(), each)));
    expect(taken.filter((each) => !each)).toHaveLength(1);
    for (const each of all) await claims().release(each, scene.signal);
    expect(await leases()).toBe(0);
  });

  it('is free again once whoever had it is over, or gone, though nobody gave it back', async () => {
    const [over, gone, next] = [await sending('c'), await sending('c'), await sending('c')];
    expect(await isTaken(claims(), over)).toBe(false);
    await scene.patch(migrations, over.metadata.name ?? '', { status: { phase: 'Failed' } }, 'status');
    expect(await isTaken(claims(), gone)).toBe(false);
    await scene.delete(migrations, gone.metadata.name ?? '');
    expect(await isTaken(claims(), next)).toBe(false);
    // What is over gives back only what it has.
    await claims().release(over, scene.signal);
    expect(await leases()).toBe(1);
    await claims().release(next, scene.signal);
  });

  it('is needed by halves alone', async () => {
    const whole = await half({});
    expect(await isTaken(claims(), whole)).toBe(false);
    expect(await leases()).toBe(0);
  });
});

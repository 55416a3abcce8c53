import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../env/test.ts';
import { attributesOf, pods } from './attributes.fixture.ts';
import { TestRegistry } from '../registry/registry.fixture.ts';
import { ServiceAccountAdmission } from './service-account.ts';
import { object, pod, refused, specOf } from './plugins.fixture.ts';

describe('ServiceAccountAdmission', () => {
  async function scene(): Promise<ServiceAccountAdmission> {
    const registry = await TestRegistry.open();
    await registry.put(object('ServiceAccount', 'robot', { imagePullSecrets: [{ name: 'pull' }] }));
    return new ServiceAccountAdmission({ registry, clock: new ManualClock(), hasDefaultAccounts: false });
  }

  it.each([
    ['none', {}, { serviceAccountName: 'default', serviceAccount: 'default' }],
    ['the old field alone', { serviceAccount: 'robot' }, { serviceAccountName: 'robot', serviceAccount: 'robot' }],
    ['a name', { serviceAccountName: 'robot' }, { serviceAccountName: 'robot', serviceAccount: 'robot' }],
  ])('completes a pod with %s', async (_, spec, expected) => {
    const attributes = attributesOf(pods, pod(spec));
    expect(await refused(scene(), attributes)).toBeUndefined();
    expect(specOf(attributes)).toMatchObject(expected);
  });

  it('adds the pull secrets of the account unless the pod brings its own', async () => {
    const without = attributesOf(pods, pod({ serviceAccountName: 'robot' }));
    const own = attributesOf(pods, pod({ serviceAccountName: 'robot', imagePullSecrets: [{ name: 'mine' }] }));
    await refused(scene(), without);
    await refused(scene(), own);
    expect(specOf(without)).toMatchObject({ imagePullSecrets: [{ name: 'pull' }] });
    expect(specOf(own)).toMatchObject({ imagePullSecrets: [{ name: 'mine' }] });
  });

  it('refuses an account that does not exist', async () => {
    const error = await refused(scene(), attributesOf(pods, pod({ serviceAccountName: 'ghost' })));
    expect([error?.code, error?.message]).toEqual([
      403,
      'pods "p" is forbidden: error looking up service account ns/ghost: serviceaccount "ghost" not found',
    ]);
  });

  it('waits a moment for the default account, and refuses the pod where nobody makes it', async () => {
    const clock = new ManualClock();
    const registry = await TestRegistry.open();
    const admission = new ServiceAccountAdmission({ registry, clock, hasDefaultAccounts: true });
    const waiting = refused(Promise.resolve(admission), attributesOf(pods, pod({})));
    for (let turn = 0; turn < 20; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      clock.advance(100);
    }
    expect((await waiting)?.message).toBe(
      'pods "p" is forbidden: error looking up service account ns/default: serviceaccount "default" not found',
    );
    const late = refused(Promise.resolve(admission), attributesOf(pods, pod({})));
    await new Promise((resolve) => setImmediate(resolve));
    await registry.put(object('ServiceAccount', 'default'));
    clock.advance(200);
    expect(await late).toBeUndefined();
  });

  it('leaves mirror pods alone, which may not have one', async () => {
    const mirror = { 'kubernetes.io/config.mirror': 'x' };
    const plain = attributesOf(pods, pod({}, mirror));
    expect(await refused(scene(), plain)).toBeUndefined();
    expect(specOf(plain)).toEqual({ containers: [] });
    const error = await refused(scene(), attributesOf(pods, pod({ serviceAccountName: 'robot' }, mirror)));
    expect(error?.message).toBe('pods "p" is forbidden: a mirror pod may not reference service accounts');
  });

  it('does not look at updates and subresources', async () => {
    expect((await scene()).handles(attributesOf(pods, pod(), { operation: 'UPDATE' }))).toBe(false);
    expect((await scene()).handles(attributesOf(pods, pod(), { subresource: 'eviction' }))).toBe(false);
  });
});

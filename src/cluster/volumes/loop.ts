import { CLAIM_PROTECTION, VOLUME_PROTECTION } from '../../api/storage.ts';
import { type ClusterLoop, controllerIdentity } from '../loop.ts';
import { persistentVolumeClaims, persistentVolumes, pods, storageClasses } from '../resources.ts';
import { claimIndexes, VolumeBinder, volumeIndexes } from './binder.ts';
import { byClaim, claimKeys, usesClaim } from './claim-use.ts';
import { Protection } from './protection.ts';

/** Gives claims their volumes. */
export const volumeBinderLoop: ClusterLoop = {
  name: 'persistentvolume-binder-controller',
  identity: controllerIdentity('persistent-volume-binder'),
  component: 'persistentvolume-controller',
  make: ({ informers, ...context }) =>
    new VolumeBinder({
      ...context,
      claims: informers.of(persistentVolumeClaims, claimIndexes),
      volumes: informers.of(persistentVolumes, volumeIndexes),
      storageClasses: informers.of(storageClasses),
    }),
};

/** Keeps claims as long as pods use them. */
export const claimProtectionLoop: ClusterLoop = {
  name: 'persistentvolumeclaim-protection-controller',
  identity: controllerIdentity('pvc-protection-controller'),
  component: 'pvc-protection-controller',
  make: ({ env, client, metrics, informers }) => {
    const users = informers.of(pods, byClaim);
    const protection = new Protection({
      name: 'pvc-protection',
      env,
      client,
      metrics,
      resource: persistentVolumeClaims,
      objects: informers.of(persistentVolumeClaims),
      finalizer: CLAIM_PROTECTION,
      isUsed: async (claim, signal) => {
        const { namespace = '', name = '' } = claim.metadata;
        if (users.byIndex('claim', `${namespace}/${name}`).some((pod) => usesClaim(pod, claim))) return true;
        // A pod that the cache has not heard of may run all the same.
        const { items } = await client.list(pods, { namespace }, signal);
        return items.some((pod) => usesClaim(pod, claim));
      },
    });
    users.onChange(({ object, old }) => {
      for (const pod of old ? [object, old] : [object]) for (const key of claimKeys(pod)) protection.ask(key);
    });
    return protection;
  },
};

/** Keeps volumes as long as they are bound. */
export const volumeProtectionLoop: ClusterLoop = {
  name: 'persistentvolume-protection-controller',
  identity: controllerIdentity('pv-protection-controller'),
  component: 'pv-protection-controller',
  make: ({ env, client, metrics, informers }) =>
    new Protection({
      name: 'pv-protection',
      env,
      client,
      metrics,
      resource: persistentVolumes,
      objects: informers.of(persistentVolumes),
      finalizer: VOLUME_PROTECTION,
      // A binding that the cache has not heard of is another version, and the write is refused.
      isUsed: async ({ status }) => status?.phase === 'Bound',
    }),
};

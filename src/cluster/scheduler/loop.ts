import type { ClusterLoop } from '../loop.ts';
import {
  namespaces,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  podDisruptionBudgets,
  pods,
  storageClasses,
} from '../resources.ts';
import { Scheduler } from './scheduler.ts';

/** The scheduler that pods get where they name none. */
export const schedulerLoop: ClusterLoop = {
  name: 'scheduler',
  identity: { user: 'system:kube-scheduler', groups: [] },
  component: 'default-scheduler',
  make: ({ env, client, informers, recorder, metrics }) =>
    new Scheduler({
      env,
      client,
      recorder,
      metrics,
      informers: {
        pods: informers.of(pods),
        nodes: informers.of(nodes),
        namespaces: informers.of(namespaces),
        persistentVolumeClaims: informers.of(persistentVolumeClaims),
        persistentVolumes: informers.of(persistentVolumes),
        storageClasses: informers.of(storageClasses),
        podDisruptionBudgets: informers.of(podDisruptionBudgets),
      },
    }),
};

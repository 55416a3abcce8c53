import type { KubeObject } from '../../api/meta.ts';
import type { ResourceQuota } from '../../machinery/quota.ts';
import type { Invariant } from '../invariant.ts';
import { countOf } from '../quota-counts.ts';

/** A quota that has been there for a while lets in no more than it allows, of whatever kind it counts. */

/** Requests that were let in before may be under way for so long. */
const A_WHILE_MS = 2 * 60_000;

export function quotasHold(): Invariant {
  /** Since when each quota has been as it is. */
  const since = new Map<string, number>();
  return {
    name: 'quotas-hold',
    observe({ bucket, key, object, previous, atMs }, state) {
      if (bucket === 'resourcequotas' && hardOf(object) !== hardOf(previous)) since.set(key, atMs);
      if (!object || previous) return undefined;
      const name = COUNTED[bucket];
      if (name === undefined) return undefined;
      for (const quota of state.list('resourcequotas') as Iterable<ResourceQuota>) {
        const { namespace, name: quotaName } = quota.metadata;
        const hard = Number(quota.spec?.hard?.[name] ?? Number.POSITIVE_INFINITY);
        if (
          namespace !== object.metadata.namespace ||
          atMs - (since.get(`${namespace}/${quotaName}`) ?? 0) < A_WHILE_MS
        )
          continue;
        const count = countOf(name, namespace ?? '', state, atMs);
        if (count > hard) return `${bucket} ${key} was let in as number ${count}, though ${quotaName} allows ${hard}`;
      }
      return undefined;
    },
  };
}

const COUNTED: { readonly [bucket: string]: string } = { pods: 'pods', configmaps: 'count/configmaps' };

function hardOf(object: KubeObject | undefined): string {
  return JSON.stringify((object as ResourceQuota | undefined)?.spec?.hard ?? {});
}

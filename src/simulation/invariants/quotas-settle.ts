import type { Json } from '../../api/meta.ts';
import type { ResourceQuota } from '../../machinery/quota.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Invariant, Unsettled } from '../invariant.ts';
import { countOf } from '../quota-counts.ts';

/** In the end every quota says how much there is of what it counts. */
export function quotasSettle(): Invariant {
  return {
    name: 'quotas-settle',
    unsettled: ({ state, elapsedMs }) =>
      [...(state.list('resourcequotas') as Iterable<ResourceQuota>)].flatMap((quota): Unsettled[] => {
        const { used = {}, hard = {} } = quota.status ?? {};
        return Object.entries(quota.spec?.hard ?? {}).flatMap(([name, limit]) => {
          const count = countOf(name, quota.metadata.namespace ?? '', state, elapsedMs);
          if (Number(used[name]) === count && hard[name] === limit) return [];
          return [
            {
              key: keyOf(quota),
              what: `says ${said(used[name])} of ${said(hard[name])} ${name}; there are ${count} of ${said(limit)}`,
            },
          ];
        });
      }),
  };
}

function said(amount: Json | undefined): string {
  return JSON.stringify(amount) ?? 'nothing';
}

import type { Filter } from '../filter.ts';
import type { PodInfo } from '../pod-info.ts';
import { NO_REASONS } from '../reason.ts';
import { untoleratedTaint } from '../tolerations.ts';

/** Every taint of a node that forbids scheduling has to be tolerated; the first that is not is named. */
export function taintFilter({ tolerations }: PodInfo): Filter {
  return {
    reasons({ info }) {
      const taint = untoleratedTaint(info.taints, tolerations);
      if (!taint) return NO_REASONS;
      const message = `node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`;
      return [{ filter: 'taints', message, isResolvable: false }];
    },
  };
}

import type { KubeObject } from '../../api/meta.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../registry/contract.ts';
import { isMainResource } from './attributes.ts';

interface Toleration {
  key?: string;
  operator?: string;
  effect?: string;
  tolerationSeconds?: number;
}

interface Pod extends KubeObject {
  spec?: { tolerations?: Toleration[] };
}

/** How long a pod stays on a node that is lost, unless it says otherwise. */
const TOLERATION_SECONDS = 300;
const TAINTS = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];

/** Lets every pod outlast a short loss of its node: it tolerates the NoExecute taints of one for five minutes. */
export class DefaultTolerations implements AdmissionPlugin {
  readonly name = 'DefaultTolerationSeconds';

  handles(attributes: AdmissionAttributes): boolean {
    return (
      (attributes.operation === 'CREATE' || attributes.operation === 'UPDATE') && isMainResource(attributes, '', 'pods')
    );
  }

  async mutate({ object }: AdmissionAttributes): Promise<void> {
    const spec = (object as Pod | undefined)?.spec;
    if (!spec) return;
    const present = spec.tolerations ?? [];
    const missing = TAINTS.filter((taint) => !present.some((toleration) => covers(toleration, taint)));
    if (missing.length === 0) return;
    spec.tolerations = [
      ...present,
      ...missing.map((key) => ({
        key,
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: TOLERATION_SECONDS,
      })),
    ];
  }
}

/** An empty key or effect stands for all of them. */
function covers({ key = '', effect = '' }: Toleration, taint: string): boolean {
  return (key === taint || key === '') && (effect === 'NoExecute' || effect === '');
}

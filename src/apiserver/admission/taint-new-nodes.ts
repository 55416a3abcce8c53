import type { KubeObject } from '../../api/meta.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../registry/contract.ts';
import { isMainResource } from './attributes.ts';

interface Taint {
  key?: string;
  effect?: string;
}

interface Node extends KubeObject {
  spec?: { taints?: Taint[] };
}

const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };

/** Keeps pods from a new node until it has been heard to be ready: the node controller takes the taint off then. */
export class TaintNewNodes implements AdmissionPlugin {
  readonly name = 'TaintNodesByCondition';

  handles(attributes: AdmissionAttributes): boolean {
    return attributes.operation === 'CREATE' && isMainResource(attributes, '', 'nodes');
  }

  async mutate({ object }: AdmissionAttributes): Promise<void> {
    const node = object as Node | undefined;
    if (!node) return;
    const taints = node.spec?.taints ?? [];
    if (taints.some(({ key, effect }) => key === NOT_READY.key && effect === NOT_READY.effect)) return;
    node.spec = { ...node.spec, taints: [...taints, { ...NOT_READY }] };
  }
}

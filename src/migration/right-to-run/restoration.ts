import type { Restoration } from '../../api/kubevirt/kube-virt.ts';
import { HEARD_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import type { Node } from '../fit/objects.ts';
import { isOutOfService } from './out-of-service.ts';

/**
 * Which nodes are still to be heard since the API's data was restored: those whose agents have not said all that their
 * journals hold, and that nobody has given up. A node that is not there at all may be off and come back.
 */
export function stillUnheard(restoration: Restoration, nodeOf: (name: string) => Node | undefined): readonly string[] {
  return (restoration.unheard ?? []).filter((name) => {
    const node = nodeOf(name);
    return node?.metadata.annotations?.[HEARD_ANNOTATION] !== restoration.id && !isOutOfService(node);
  });
}

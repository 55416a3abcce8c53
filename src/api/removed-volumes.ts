import type { KubeObject } from './meta.ts';
import { DIRECTORY_PROVISIONER, PROVISIONED_BY, REMOVED_VOLUMES, VOLUME_NODE } from './storage.ts';

/**
 * How the directories of volumes go: once nobody has a volume any more, the agent that can reach its directory removes
 * it and says so on its own node, which is all that it may write. The volume's maker then deletes the object.
 */

interface ReclaimableVolume extends KubeObject {
  spec?: { readonly persistentVolumeReclaimPolicy?: string };
  status?: { readonly phase?: string };
}

/** Names are separated by spaces, which they do not contain. */
const SEPARATOR = ' ';

/** The volumes whose directories a node's agent says to have removed. */
export function removedVolumes({ metadata }: Pick<KubeObject, 'metadata'>): readonly string[] {
  return (metadata.annotations?.[REMOVED_VOLUMES] ?? '').split(SEPARATOR).filter((name) => name !== '');
}

/** What a node says about volumes that were removed; null to say nothing. */
export function removedVolumesText(names: Iterable<string>): string | null {
  return [...names].sort().join(SEPARATOR) || null;
}

/** Whether a volume is a directory of ours that nobody has any more and that is to go. */
export function isToBeRemoved({ metadata, spec, status }: ReclaimableVolume): boolean {
  return (
    metadata.annotations?.[PROVISIONED_BY] === DIRECTORY_PROVISIONER &&
    spec?.persistentVolumeReclaimPolicy === 'Delete' &&
    status?.phase === 'Released'
  );
}

/** The node whose disk a volume is on; undefined where several share it. */
export function nodeOfVolume({ metadata }: Pick<KubeObject, 'metadata'>): string | undefined {
  return metadata.annotations?.[VOLUME_NODE];
}

import { isToBeRemoved, nodeOfVolume, removedVolumes, removedVolumesText } from '../../api/removed-volumes.ts';
import { ApiError } from '../../api/status.ts';
import { REMOVED_VOLUMES } from '../../api/storage.ts';
import type { DiskFiles, Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import { Informer } from '../../kube/informer.ts';
import { withoutManagedFields } from '../../kube/object-cache.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import type { Node, PersistentVolume } from '../../migration/fit/objects.ts';

export interface DirectoryRemovalOptions {
  readonly env: Env;
  readonly client: Client;
  readonly nodeName: string;
  /** The directory that volumes of this node are in. */
  readonly localPath: string;
  /** The directory that volumes of this host are in, where this node is one of the host's. */
  readonly sharedPath: string | undefined;
  readonly files: Pick<DiskFiles, 'remove'>;
}

const nodes: Resource<Node> = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };
const persistentVolumes: Resource<PersistentVolume> = {
  group: '',
  version: 'v1',
  plural: 'persistentvolumes',
  kind: 'PersistentVolume',
  namespaced: false,
};

/** Volumes that are told of at once: an annotation is no place for many. Others follow when these are gone. */
const TOLD_MAX = 100;
const ALL = 'volumes';
/** How soon it is said of a node that is not there: it is about to register. */
const UNREGISTERED_MS = 1000;

/**
 * Removes the directories of volumes that nobody has any more, and says so on the node: its maker then deletes the
 * volume's object. Only what is directly below the directories that this node keeps volumes in is ever removed,
 * whatever a volume says about where it is.
 */
export class DirectoryRemoval implements Service {
  readonly name = 'removal of directories';
  readonly #options: DirectoryRemovalOptions;
  readonly #volumes: Informer<PersistentVolume>;
  readonly #controller: Controller;
  /** UIDs of volumes whose directories are gone. */
  readonly #removed = new Set<string>();

  constructor(options: DirectoryRemovalOptions) {
    const { env, client } = options;
    this.#options = options;
    this.#volumes = new Informer({ client, env, resource: persistentVolumes, transform: withoutManagedFields });
    const reconcile = (_: string, signal: AbortSignal): Promise<Result> => this.#reconcile(signal);
    this.#controller = new Controller({ name: 'directory-removal', env, reconcile });
    this.#volumes.onChange(({ type, object, old }) => {
      if (type === 'deleted') this.#removed.delete(object.metadata.uid ?? '');
      if (this.#isOurs(object) || (old && this.#isOurs(old))) this.#controller.enqueue(ALL);
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    // What a former life has said may have come true meanwhile.
    const begun = this.#volumes.synced.then(() => this.#controller.enqueue(ALL));
    await Promise.all([
      this.#volumes.run(signal),
      this.#controller.run(signal),
      Promise.race([begun, aborted(signal)]),
    ]);
  }

  #isOurs(volume: PersistentVolume): boolean {
    return isToBeRemoved(volume) && this.#directoryOf(volume) !== undefined;
  }

  /** The volume's directory, if it is for this node to remove. */
  #directoryOf(volume: PersistentVolume): string | undefined {
    const { nodeName, localPath, sharedPath } = this.#options;
    const node = nodeOfVolume(volume);
    const [root, path] =
      node === undefined ? [sharedPath, volume.spec?.hostPath?.path] : [localPath, volume.spec?.local?.path];
    if (root === undefined || (node !== undefined && node !== nodeName)) return undefined;
    return path === `${root.replace(/\/+$/, '')}/${volume.metadata.name}` ? path : undefined;
  }

  async #reconcile(signal: AbortSignal): Promise<Result> {
    const ours = [...this.#volumes.list()].filter((volume) => this.#isOurs(volume));
    const results = await Promise.allSettled(ours.map((volume) => this.#remove(volume, signal)));
    const said = await this.#say(
      ours.filter(({ metadata }) => this.#removed.has(metadata.uid ?? '')),
      signal,
    );
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    return said;
  }

  async #remove({ metadata: { name = '', uid = '' } }: PersistentVolume, signal: AbortSignal): Promise<void> {
    if (this.#removed.has(uid)) return;
    // Data is not given up on the word of a cache: somebody may have kept the volume meanwhile.
    const actual = await this.#options.client.find(persistentVolumes, '', name, signal);
    if (!actual || actual.metadata.uid !== uid || !isToBeRemoved(actual)) return;
    const directory = this.#directoryOf(actual);
    if (directory === undefined) return;
    await this.#options.files.remove(directory);
    this.#options.env.log.info('removed the directory of a volume', { volume: name, directory });
    this.#removed.add(uid);
  }

  /** Says of which volumes the directories are gone, of none that is gone itself. */
  async #say(volumes: readonly PersistentVolume[], signal: AbortSignal): Promise<Result> {
    const { client, nodeName } = this.#options;
    const text = removedVolumesText(volumes.map(({ metadata }) => metadata.name ?? '').slice(0, TOLD_MAX));
    const node = await client.find(nodes, '', nodeName, signal);
    // A node that is yet to register has said nothing, and says it once it has.
    if (text === (node ? removedVolumesText(removedVolumes(node)) : null)) return {};
    if (!node) return { requeueAfterMs: UNREGISTERED_MS };
    const body = { metadata: { annotations: { [REMOVED_VOLUMES]: text } } };
    const written = await unlessGone(() => client.patch(nodes, '', nodeName, { type: 'merge', body }, signal));
    return written ? {} : { requeueAfterMs: UNREGISTERED_MS };
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

async function unlessGone<T>(write: () => Promise<T>): Promise<T | undefined> {
  try {
    return await write();
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

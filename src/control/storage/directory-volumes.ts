import { ApiError } from '../../api/status.ts';
import { DIRECTORY_PROVISIONER, SELECTED_NODE } from '../../api/storage.ts';
import { isToBeRemoved, nodeOfVolume, removedVolumes } from '../../api/removed-volumes.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { Client } from '../../kube/client.ts';
import { Controller } from '../../kube/controller.ts';
import { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer } from '../../kube/informer.ts';
import { LruMap } from '../../kube/lru-map.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../migration/fit/objects.ts';
import { storageClassNameOf } from '../../migration/fit/volume-match.ts';
import type { ControlContext } from '../context.ts';
import { nodes, persistentVolumeClaims, persistentVolumes, storageClasses } from '../resources.ts';
import { provisionFor } from './provision.ts';

/** Claims without a volume, by their class; nodes that say of volumes that they were removed, by volume. */
const byPendingClass = {
  pendingClass: (claim: PersistentVolumeClaim): readonly string[] =>
    claim.spec?.volumeName ? [] : [storageClassNameOf(claim)],
};
const byRemovedVolume = { removedVolume: removedVolumes };
const TOLD_MAX = 4096;

/**
 * Makes volumes that are directories, for claims of the classes that say so, and deletes the objects of those whose
 * directories are gone. The directories themselves are made and removed by agents.
 */
export class DirectoryVolumes implements Service {
  readonly name = 'directory volumes';
  readonly #client: Client;
  /** Says who it is that makes no volume. */
  readonly #recorder: EventRecorder;
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #volumes: Informer<PersistentVolume>;
  readonly #classes: Informer<StorageClass>;
  readonly #nodes: Informer<Node>;
  readonly #making: Controller;
  readonly #removing: Controller;
  /** Why claims have no volume, as they were last told, by UID: the same is not told for every reason to look. */
  readonly #told = new LruMap<string, string>(TOLD_MAX);

  constructor({ env, client, informers, metrics }: Omit<ControlContext, 'recorder'>) {
    this.#client = client;
    this.#recorder = new EventRecorder({ client, env, component: DIRECTORY_PROVISIONER });
    this.#claims = informers.of(persistentVolumeClaims, byPendingClass);
    this.#volumes = informers.of(persistentVolumes);
    this.#classes = informers.of(storageClasses);
    this.#nodes = informers.of(nodes, byRemovedVolume);
    const more = { env, ...(metrics ? { metrics } : {}) };
    this.#making = new Controller({
      name: 'volume-maker',
      ...more,
      reconcile: (key, signal) => this.#make(key, signal),
    });
    this.#removing = new Controller({
      name: 'volume-remover',
      ...more,
      reconcile: (key, signal) => this.#remove(key, signal),
    });
    this.#listen();
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#making.run(signal), this.#removing.run(signal), this.#recorder.run(signal)]);
  }

  #listen(): void {
    this.#claims.onChange(({ type, object }) => {
      if (type !== 'deleted') this.#making.enqueue(keyOf(object));
    });
    this.#classes.onChange(({ object }) => {
      for (const claim of this.#claims.byIndex('pendingClass', object.metadata.name ?? ''))
        this.#making.enqueue(keyOf(claim));
    });
    this.#nodes.onChange(({ type, object }) => {
      if (type !== 'deleted') for (const name of removedVolumes(object)) this.#removing.enqueue(name);
    });
    this.#volumes.onChange(({ type, object }) => {
      if (type !== 'deleted' && isToBeRemoved(object)) this.#removing.enqueue(object.metadata.name ?? '');
    });
  }

  async #make(key: string, signal: AbortSignal): Promise<void> {
    const claim = this.#claims.get(key);
    if (!claim) return;
    const provision = provisionFor(claim, {
      storageClass: (name) => this.#classes.get(name),
      node: (name) => this.#nodes.get(name),
    });
    const className = JSON.stringify(storageClassNameOf(claim));
    const fail = (message: string): void =>
      this.#tell(claim, `failed to provision volume with StorageClass ${className}: ${message}`);
    switch (provision.type) {
      case 'nothing':
        return;
      case 'refuse':
        return fail(provision.message);
      case 'choose-again': {
        fail(provision.message);
        const { namespace = '', name = '', uid = '', resourceVersion = '' } = claim.metadata;
        const body = { metadata: { uid, resourceVersion, annotations: { [SELECTED_NODE]: null } } };
        await this.#client.patch(persistentVolumeClaims, namespace, name, { type: 'merge', body }, signal);
        return;
      }
      case 'make': {
        const { volume } = provision;
        if (this.#volumes.get(volume.metadata.name ?? '')) return;
        await ignoring(409, () => this.#client.create(persistentVolumes, volume, signal));
        const message = `Successfully provisioned volume ${volume.metadata.name}`;
        return this.#recorder.event(claim, 'Normal', 'ProvisioningSucceeded', message);
      }
      default:
        return unreachable(provision);
    }
  }

  #tell(claim: PersistentVolumeClaim, message: string): void {
    const { uid = '' } = claim.metadata;
    if (this.#told.get(uid) === message) return;
    this.#told.set(uid, message);
    this.#recorder.event(claim, 'Warning', 'ProvisioningFailed', message);
  }

  /** Deletes the object of a volume whose directory is gone, on the word of a node that could know. */
  async #remove(name: string, signal: AbortSignal): Promise<void> {
    const volume = this.#volumes.get(name);
    if (!volume || !isToBeRemoved(volume) || volume.metadata.deletionTimestamp !== undefined) return;
    const owner = nodeOfVolume(volume);
    const witnesses = this.#nodes.byIndex('removedVolume', name);
    if (!witnesses.some(({ metadata }) => owner === undefined || owner === metadata.name)) return;
    const { uid, resourceVersion } = volume.metadata;
    const options = { preconditions: { uid, resourceVersion } };
    await ignoring(404, () => this.#client.delete(persistentVolumes, '', name, signal, options));
  }
}

async function ignoring(code: number, write: () => Promise<unknown>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!(error instanceof ApiError && error.code === code)) throw error;
  }
}

import { formatTime } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import {
  BETA_DEFAULT_CLASS,
  BETA_STORAGE_PROVISIONER,
  BIND_COMPLETED,
  BOUND_BY_CONTROLLER,
  DEFAULT_CLASS,
  STORAGE_PROVISIONER,
} from '../../api/storage.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer, InformerChange } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../../migration/fit/objects.ts';
import { storageClassNameOf } from '../../migration/fit/volume-match.ts';
import { persistentVolumeClaims, persistentVolumes } from '../resources.ts';
import { type ClaimDecision, type ClaimView, decideClaim, type Notice } from './claim-decision.ts';
import { reservation } from './reservation.ts';
import { decideVolume } from './volume-decision.ts';
import { Written } from './written.ts';

type Source<T extends PersistentVolume | PersistentVolumeClaim> = Pick<Informer<T>, 'get' | 'byIndex' | 'onChange'>;

export interface VolumeBinderOptions {
  readonly env: Env;
  readonly client: Client;
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly metrics?: KubeMetrics;
  /** With `claimIndexes`. */
  readonly claims: Source<PersistentVolumeClaim>;
  /** With `volumeIndexes`. */
  readonly volumes: Source<PersistentVolume>;
  readonly storageClasses: Pick<Informer<StorageClass>, 'get' | 'list' | 'onChange'>;
}

/** Claims by the volume they name, and those without one by their storage class. */
export const claimIndexes = {
  volume: ({ spec }: PersistentVolumeClaim): readonly string[] => (spec?.volumeName ? [spec.volumeName] : []),
  pendingClass: (claim: PersistentVolumeClaim): readonly string[] =>
    claim.spec?.volumeName ? [] : [storageClassNameOf(claim)],
};

/** Volumes by the claim they name, and those that name none by their storage class. */
export const volumeIndexes = {
  claim: ({ spec }: PersistentVolume): readonly string[] =>
    spec?.claimRef ? [`${spec.claimRef.namespace}/${spec.claimRef.name}`] : [],
  freeClass: (volume: PersistentVolume): readonly string[] =>
    volume.spec?.claimRef ? [] : [storageClassNameOf(volume)],
};

const RECHECK_MS = 1000;
/** Names of claims have a slash in them, names of volumes have none. */
const isClaimKey = (key: string): boolean => key.includes('/');

/**
 * Binds claims to volumes, and says what state both are in. One key is worked on at a time: a volume must not be given
 * away twice, and what is written about one side is written about the other next.
 *
 * A crash in between leaves a volume that names its claim; the claim then finds it, whoever looks next.
 */
export class VolumeBinder implements Service {
  readonly name = 'persistent volume binder';
  readonly #options: VolumeBinderOptions;
  readonly #controller: Controller;
  readonly #writtenClaims = new Written<PersistentVolumeClaim>();
  readonly #writtenVolumes = new Written<PersistentVolume>();
  /** What was last said about a claim, by its UID: the same is not said again for every reason to look. */
  readonly #told = new Map<string, string>();

  constructor(options: VolumeBinderOptions) {
    this.#options = options;
    const { env, metrics, claims, volumes, storageClasses } = options;
    this.#controller = new Controller({
      name: 'persistentvolume-binder',
      env,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      ...(metrics ? { metrics } : {}),
    });
    claims.onChange((change) => this.#onClaim(change));
    volumes.onChange((change) => this.#onVolume(change));
    storageClasses.onChange(({ object }) => {
      for (const name of [object.metadata.name ?? '', '']) this.#enqueuePending(name);
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  #onClaim({ type, object, old }: InformerChange<PersistentVolumeClaim>): void {
    this.#writtenClaims.heard(object, type === 'deleted');
    if (type === 'deleted') this.#told.delete(object.metadata.uid ?? '');
    this.#controller.enqueue(keyOf(object));
    for (const name of new Set([object.spec?.volumeName, old?.spec?.volumeName]))
      if (name) this.#controller.enqueue(name);
    if (type === 'updated' && old?.metadata.uid === object.metadata.uid) return;
    for (const { metadata } of this.#options.volumes.byIndex('claim', keyOf(object)))
      this.#controller.enqueue(metadata.name ?? '');
  }

  #onVolume({ type, object, old }: InformerChange<PersistentVolume>): void {
    this.#writtenVolumes.heard(object, type === 'deleted');
    if (type === 'deleted') this.#told.delete(object.metadata.uid ?? '');
    const name = object.metadata.name ?? '';
    this.#controller.enqueue(name);
    for (const claim of this.#options.claims.byIndex('volume', name)) this.#controller.enqueue(keyOf(claim));
    for (const each of [object, old])
      for (const key of each ? volumeIndexes.claim(each) : []) this.#controller.enqueue(key);
    if (type !== 'deleted' && object.status?.phase === 'Available') this.#enqueuePending(storageClassNameOf(object));
  }

  #enqueuePending(className: string): void {
    for (const claim of this.#options.claims.byIndex('pendingClass', className)) this.#controller.enqueue(keyOf(claim));
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    try {
      await (isClaimKey(key) ? this.#claim(key, signal) : this.#volume(key, signal));
      return undefined;
    } catch (error) {
      // Others write too: as soon as their news come we look again, and in any case before long.
      if (error instanceof ApiError && error.code === 409) return { requeueAfterMs: RECHECK_MS };
      throw error;
    }
  }

  async #claim(key: string, signal: AbortSignal): Promise<void> {
    const claim = this.#writtenClaims.newest(this.#options.claims.get(key));
    if (!claim) return;
    const view = this.#view();
    let decision = decideClaim(claim, view);
    if (decision.type === 'lose' && claim.status?.phase !== 'Lost') {
      // Data is not given up on the word of a cache.
      const actual = await this.#liveVolume(claim.spec?.volumeName ?? '', signal);
      decision = decideClaim(claim, { ...view, volume: () => actual });
    }
    await ignoringGone(() => this.#follow(claim, decision, signal));
  }

  async #follow(claim: PersistentVolumeClaim, decision: ClaimDecision, signal: AbortSignal): Promise<void> {
    switch (decision.type) {
      case 'bind':
        return this.#bind(claim, decision.volume, signal);
      case 'wait':
        if (decision.notice) this.#tell(claim, decision.notice);
        if ((claim.status?.phase ?? '') === '') await this.#writeClaimStatus(claim, { phase: 'Pending' }, signal);
        return;
      case 'provision':
        return this.#provision(claim, decision, signal);
      case 'choose-class':
        await this.#writeClaim({ ...claim, spec: { ...claim.spec, storageClassName: decision.storageClass } }, signal);
        return;
      case 'lose':
        if (claim.status?.phase === 'Lost') return;
        this.#tell(claim, decision.notice);
        await this.#writeClaimStatus(claim, { phase: 'Lost' }, signal);
        return;
      default:
        return unreachable(decision);
    }
  }

  async #provision(
    claim: PersistentVolumeClaim,
    { provisioner, notice }: ClaimDecision & { readonly type: 'provision' },
    signal: AbortSignal,
  ): Promise<void> {
    const annotations = {
      ...claim.metadata.annotations,
      [BETA_STORAGE_PROVISIONER]: provisioner,
      [STORAGE_PROVISIONER]: provisioner,
    };
    if (!deepEqual(annotations, claim.metadata.annotations))
      await this.#writeClaim({ ...claim, metadata: { ...claim.metadata, annotations } }, signal);
    this.#tell(claim, notice);
  }

  /** Brings both sides to where they say that they belong together. Whatever says so already is not written again. */
  async #bind(claim: PersistentVolumeClaim, volume: PersistentVolume, signal: AbortSignal): Promise<void> {
    let [own, other] = [volume, claim];
    if (own.spec?.claimRef?.uid !== claim.metadata.uid) own = await this.#writeVolume(reservation(own, claim), signal);
    if (own.status?.phase !== 'Bound') own = await this.#writePhase(own, 'Bound', signal);
    const linked = link(other, own);
    if (!deepEqual(linked, other)) other = await this.#writeClaim(linked, signal);
    const { accessModes = [], capacity = {} } = own.spec ?? {};
    // A claim that is bound may know better how large its volume has become.
    const size = other.status?.phase === 'Bound' && other.status.capacity ? other.status.capacity : capacity;
    await this.#writeClaimStatus(other, { phase: 'Bound', accessModes, capacity: size }, signal);
  }

  async #volume(name: string, signal: AbortSignal): Promise<void> {
    const volume = this.#writtenVolumes.newest(this.#options.volumes.get(name));
    if (!volume) return;
    const { namespace = '', name: claimName = '', uid = '' } = volume.spec?.claimRef ?? {};
    let claim = this.#writtenClaims.newest(this.#options.claims.get(`${namespace}/${claimName}`));
    // A volume that is let go may be deleted at once, so the server is asked whether its claim is really gone.
    if (uid !== '' && claim?.metadata.uid !== uid && !isLetGo(volume))
      claim = await this.#liveClaim(namespace, claimName, signal);
    const decision = decideVolume(volume, claim);
    await ignoringGone(async () => {
      switch (decision.type) {
        case 'nothing':
          return;
        case 'ask-claim':
          return this.#controller.enqueue(`${namespace}/${claimName}`);
        case 'unbind':
          await this.#writePhase(await this.#writeVolume(decision.volume, signal), 'Available', signal);
          return;
        case 'phase':
          if (decision.notice) this.#tell(volume, decision.notice);
          await this.#writePhase(volume, decision.phase, signal, decision.notice?.message);
          return;
        default:
          return unreachable(decision);
      }
    });
  }

  #view(): ClaimView {
    const { volumes, storageClasses } = this.#options;
    return {
      volume: (name) => this.#writtenVolumes.newest(volumes.get(name)),
      volumesFor: (claim) => {
        const written = [...this.#writtenVolumes.values()];
        const known = volumes.byIndex('claim', keyOf(claim)).map((each) => this.#writtenVolumes.newest(each) ?? each);
        return new Set([...written, ...known]);
      },
      freeVolumes: (name) =>
        volumes.byIndex('freeClass', name).map((each) => this.#writtenVolumes.newest(each) ?? each),
      storageClass: (name) => storageClasses.get(name),
      defaultClass: () => defaultClassOf(storageClasses.list()),
    };
  }

  #tell(about: PersistentVolume | PersistentVolumeClaim, { type, reason, message }: Notice): void {
    const { uid = '' } = about.metadata;
    const text = `${reason}: ${message}`;
    if (this.#told.get(uid) === text) return;
    this.#told.set(uid, text);
    this.#options.recorder.event(about, type, reason, message);
  }

  async #writeVolume(volume: PersistentVolume, signal: AbortSignal): Promise<PersistentVolume> {
    const written = await this.#options.client.update(persistentVolumes, volume, signal);
    this.#writtenVolumes.add(written);
    return written;
  }

  async #writePhase(
    volume: PersistentVolume,
    phase: string,
    signal: AbortSignal,
    message = '',
  ): Promise<PersistentVolume> {
    const lastPhaseTransitionTime = formatTime(this.#options.env.clock.now());
    const status = { phase, lastPhaseTransitionTime, ...(message === '' ? {} : { message }) };
    const changed = { ...volume, status };
    const written = await this.#options.client.update(persistentVolumes, changed, signal, { subresource: 'status' });
    this.#writtenVolumes.add(written);
    return written;
  }

  async #writeClaim(claim: PersistentVolumeClaim, signal: AbortSignal): Promise<PersistentVolumeClaim> {
    const written = await this.#options.client.update(persistentVolumeClaims, claim, signal);
    this.#writtenClaims.add(written);
    return written;
  }

  async #writeClaimStatus(
    claim: PersistentVolumeClaim,
    change: NonNullable<PersistentVolumeClaim['status']>,
    signal: AbortSignal,
  ): Promise<void> {
    const status = change.phase === 'Bound' ? { ...claim.status, ...change } : change;
    if (deepEqual(status, claim.status)) return;
    const options = { subresource: 'status' };
    const written = await this.#options.client.update(persistentVolumeClaims, { ...claim, status }, signal, options);
    this.#writtenClaims.add(written);
  }

  async #liveVolume(name: string, signal: AbortSignal): Promise<PersistentVolume | undefined> {
    return name === '' ? undefined : this.#options.client.find(persistentVolumes, '', name, signal);
  }

  async #liveClaim(namespace: string, name: string, signal: AbortSignal): Promise<PersistentVolumeClaim | undefined> {
    return this.#options.client.find(persistentVolumeClaims, namespace, name, signal);
  }
}

/** The claim, saying that the volume is its own. */
function link(claim: PersistentVolumeClaim, volume: PersistentVolume): PersistentVolumeClaim {
  const isChosen = (claim.spec?.volumeName ?? '') === '';
  const annotations = {
    ...claim.metadata.annotations,
    [BIND_COMPLETED]: 'yes',
    ...(isChosen ? { [BOUND_BY_CONTROLLER]: 'yes' } : {}),
  };
  const volumeName = volume.metadata.name ?? '';
  return { ...claim, metadata: { ...claim.metadata, annotations }, spec: { ...claim.spec, volumeName } };
}

function isLetGo({ status }: PersistentVolume): boolean {
  return status?.phase === 'Released' || status?.phase === 'Failed';
}

/** The newest of several, then the first by name. */
function defaultClassOf(classes: Iterable<StorageClass>): string | undefined {
  const isDefault = ({ metadata: { annotations = {} } }: StorageClass): boolean =>
    annotations[DEFAULT_CLASS] === 'true' || annotations[BETA_DEFAULT_CLASS] === 'true';
  const rank = ({ metadata }: StorageClass): string => metadata.creationTimestamp ?? '';
  let chosen: StorageClass | undefined;
  for (const each of classes) {
    if (!isDefault(each)) continue;
    const isBefore = !chosen || rank(each) > rank(chosen);
    const isAlike = chosen && rank(each) === rank(chosen);
    if (isBefore || (isAlike && (each.metadata.name ?? '') < (chosen?.metadata.name ?? ''))) chosen = each;
  }
  return chosen?.metadata.name;
}

/** What is gone needs nothing more; its going is heard of. */
async function ignoringGone(write: () => Promise<unknown> | void): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.code === 404;
}

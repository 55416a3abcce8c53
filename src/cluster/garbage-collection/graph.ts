import { apiVersionOf, type ObjectMeta, type OwnerReference } from '../../api/meta.ts';
import type { Resource } from '../../kube/resource.ts';

/**
 * Who owns whom, as far as the watches have told: every object is a node, under its UID, and knows its dependents.
 *
 * An owner that was heard of but never seen, because its watch is behind or because it does not exist, is a node as
 * well, which somebody has to verify. So is one that was seen and is gone, for as long as it has dependents: what was
 * seen last may be wrong by the time that it matters. The graph therefore never says that something is to be deleted;
 * it says whose circumstances are worth a look at the server, and that only once per reason.
 */

/** What is kept of an object. */
export type NodeMetadata = Pick<
  ObjectMeta,
  'name' | 'namespace' | 'uid' | 'ownerReferences' | 'finalizers' | 'deletionTimestamp'
>;

/** Where an object is said to be: what a reference says, and in whose namespace. */
export interface Coordinates {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  /** Of whoever refers to it; means nothing where the kind has no namespaces. */
  readonly namespace: string;
}

/** An object that a watch shows. */
export interface Observed {
  readonly resource: Resource;
  readonly metadata: NodeMetadata;
}

/** An object that others refer to, but that no watch shows. */
export interface HeardOf {
  readonly presumed: Coordinates;
  /** Whether a watch has shown its end. */
  readonly wasDeleted: boolean;
  /** Whether the server has said that there is no such object. */
  isAbsent: boolean;
  /** How often the server has said that there is. */
  sightings: number;
}

export interface GraphNode {
  readonly uid: string;
  readonly state: Observed | HeardOf;
  /** Undefined where it never had any: most objects have none. */
  readonly dependents: ReadonlySet<GraphNode> | undefined;
  /** How many of them have to end before it can, when it deletes its dependents. */
  readonly blockers: number;
}

interface Node extends GraphNode {
  state: Observed | HeardOf;
  dependents: Set<Node> | undefined;
  blockers: number;
}

/** Whom the graph tells what it has noticed. */
export interface GraphListener {
  /** The circumstances of this object have changed. */
  check(uid: string): void;
  /** A reference leads to another namespace, where it does not count. */
  onInvalidNamespace(dependent: Observed, reference: OwnerReference): void;
}

export const FOREGROUND_FINALIZER = 'foregroundDeletion';
export const ORPHAN_FINALIZER = 'orphan';

/** Whether an object stays until its dependents are gone. */
export function isDeletingDependents(metadata: NodeMetadata): boolean {
  return isEndingWith(metadata, FOREGROUND_FINALIZER);
}

/** Whether an object stays until its dependents have been let go. */
export function isOrphaning(metadata: NodeMetadata): boolean {
  return isEndingWith(metadata, ORPHAN_FINALIZER);
}

function isEndingWith({ deletionTimestamp, finalizers }: NodeMetadata, finalizer: string): boolean {
  return deletionTimestamp !== undefined && (finalizers?.includes(finalizer) ?? false);
}

export function isObserved(state: GraphNode['state']): state is Observed {
  return 'resource' in state;
}

export function coordinatesOf({ resource, metadata }: Observed): Coordinates {
  const { group, version, kind } = resource;
  const { name = '', namespace = '' } = metadata;
  return { apiVersion: apiVersionOf(group, version), kind, name, namespace };
}

export function referencesOf({ ownerReferences }: NodeMetadata): readonly OwnerReference[] {
  return ownerReferences ?? [];
}

export class OwnerGraph {
  readonly #nodes = new Map<string, Node>();
  readonly #listener: GraphListener;

  constructor(listener: GraphListener) {
    this.#listener = listener;
  }

  get size(): number {
    return this.#nodes.size;
  }

  get(uid: string): GraphNode | undefined {
    return this.#nodes.get(uid);
  }

  /** Takes in an object as a watch shows it. */
  observe(resource: Resource, metadata: NodeMetadata): void {
    const { uid = '' } = metadata;
    if (uid === '') return;
    const state: Observed = { resource, metadata };
    const node = this.#nodes.get(uid);
    const old = node && isObserved(node.state) ? node.state.metadata : undefined;
    if (node) node.state = state;
    const current = node ?? this.#insert(uid, state);
    if (node && !old) this.#meetDependents(node, state);
    this.#relink(current, old && referencesOf(old), state);
    this.#tellTransition(current, old, metadata);
  }

  /** Takes in that an object is gone, or that nobody watches it any more. */
  remove(resource: Resource, metadata: NodeMetadata, why: 'deleted' | 'unwatched'): void {
    const node = this.#nodes.get(metadata.uid ?? '');
    // Another version of the same resource may show it meanwhile.
    if (!node || !isObserved(node.state) || node.state.resource !== resource) return;
    const { state } = node;
    const references = referencesOf(state.metadata);
    this.#reblock(node, blockedBy(references), NOBODY);
    for (const uid of new Set(references.map((each) => each.uid))) this.#detach(node, uid);
    if (node.dependents === undefined || node.dependents.size === 0) {
      this.#nodes.delete(node.uid);
      return;
    }
    node.state = { presumed: coordinatesOf(state), wasDeleted: why === 'deleted', isAbsent: false, sightings: 0 };
    this.#listener.check(node.uid);
  }

  /** Takes in what the server says of an object that was only heard of. */
  settle(node: GraphNode, isAbsent: boolean): void {
    if (isObserved(node.state)) return;
    if (!isAbsent) {
      node.state.sightings++;
      return;
    }
    node.state.isAbsent = true;
    for (const { uid } of node.dependents ?? []) this.#listener.check(uid);
  }

  /** Whether any owner of an object is other than it should be, so that the server has to be asked. */
  isInDoubt({ state }: GraphNode): boolean {
    if (!isObserved(state)) return true;
    return referencesOf(state.metadata).some((reference) => {
      const owner = this.#nodes.get(reference.uid);
      if (!owner || !isObserved(owner.state)) return true;
      return mismatchOf(state, reference, owner.state) !== undefined || isDeletingDependents(owner.state.metadata);
    });
  }

  #insert(uid: string, state: Node['state']): Node {
    const node: Node = { uid, state, dependents: undefined, blockers: 0 };
    this.#nodes.set(uid, node);
    return node;
  }

  /** An owner that was only heard of is there: are all those who spoke of it right about where? */
  #meetDependents(owner: Node, state: Observed): void {
    for (const dependent of owner.dependents ?? []) {
      if (!isObserved(dependent.state)) continue;
      for (const reference of referencesOf(dependent.state.metadata)) {
        if (reference.uid === owner.uid) this.#compare(dependent, dependent.state, reference, state);
      }
    }
  }

  #compare(dependent: Node, state: Observed, reference: OwnerReference, owner: Observed): void {
    const mismatch = mismatchOf(state, reference, owner);
    if (mismatch === 'namespace') this.#listener.onInvalidNamespace(state, reference);
    if (mismatch !== undefined || isDeletingDependents(owner.metadata)) this.#listener.check(dependent.uid);
  }

  #relink(node: Node, old: readonly OwnerReference[] | undefined, state: Observed): void {
    const references = referencesOf(state.metadata);
    if (old === references || (old ?? references).length + references.length === 0) return;
    const known = new Set(old?.map(keyOfReference));
    for (const reference of references) {
      if (!known.has(keyOfReference(reference))) this.#attach(node, state, reference);
    }
    this.#reblock(node, blockedBy(old ?? []), blockedBy(references));
    const uids = new Set(references.map(({ uid }) => uid));
    for (const uid of new Set(old?.map((each) => each.uid))) if (!uids.has(uid)) this.#detach(node, uid);
  }

  /** Counts anew whom an object blocks. An owner that waits and has nobody left to wait for is worth a look. */
  #reblock(node: Node, before: ReadonlySet<string>, after: ReadonlySet<string>): void {
    for (const uid of after) {
      const owner = before.has(uid) ? undefined : this.#nodes.get(uid);
      // What owns itself would wait for itself.
      if (owner && owner !== node) owner.blockers++;
    }
    for (const uid of before) {
      const owner = after.has(uid) ? undefined : this.#nodes.get(uid);
      if (!owner || owner === node || --owner.blockers > 0) continue;
      if (isObserved(owner.state) && isDeletingDependents(owner.state.metadata)) this.#listener.check(uid);
    }
  }

  #attach(node: Node, state: Observed, reference: OwnerReference): void {
    const said: Coordinates = { ...coordinatesIn(reference), namespace: state.metadata.namespace ?? '' };
    const owner =
      this.#nodes.get(reference.uid) ??
      this.#insert(reference.uid, { presumed: said, wasDeleted: false, isAbsent: false, sightings: 0 });
    (owner.dependents ??= new Set()).add(node);
    if (isObserved(owner.state)) {
      this.#compare(node, state, reference, owner.state);
      return;
    }
    if (!owner.state.isAbsent) this.#listener.check(owner.uid);
    if (owner.state.isAbsent || !areSame(owner.state.presumed, said)) this.#listener.check(node.uid);
  }

  #detach(node: Node, ownerUid: string): void {
    const owner = this.#nodes.get(ownerUid);
    if (!owner?.dependents?.delete(node)) return;
    if (owner.dependents.size === 0 && !isObserved(owner.state)) this.#nodes.delete(ownerUid);
  }

  #tellTransition(node: Node, old: NodeMetadata | undefined, metadata: NodeMetadata): void {
    if (isOrphaning(metadata)) {
      if (!old || !isOrphaning(old)) this.#listener.check(node.uid);
    } else if (isDeletingDependents(metadata) && !(old && isDeletingDependents(old))) {
      this.#listener.check(node.uid);
      for (const { uid } of node.dependents ?? []) this.#listener.check(uid);
    }
  }
}

/** In what a reference is wrong about its owner. */
function mismatchOf(
  { metadata }: Observed,
  reference: OwnerReference,
  owner: Observed,
): 'namespace' | 'coordinates' | undefined {
  const { namespace, ...is } = coordinatesOf(owner);
  if (namespace !== '' && namespace !== (metadata.namespace ?? '')) return 'namespace';
  return areSame({ ...coordinatesIn(reference), namespace }, { ...is, namespace }) ? undefined : 'coordinates';
}

const NOBODY: ReadonlySet<string> = new Set();

/** The owners that cannot end before whoever has these references, if they delete their dependents. */
function blockedBy(references: readonly OwnerReference[]): ReadonlySet<string> {
  const blocking = references.filter(({ blockOwnerDeletion }) => blockOwnerDeletion === true);
  return blocking.length === 0 ? NOBODY : new Set(blocking.map(({ uid }) => uid));
}

function coordinatesIn({ apiVersion, kind, name }: OwnerReference): Omit<Coordinates, 'namespace'> {
  return { apiVersion, kind, name };
}

function areSame(a: Coordinates, b: Coordinates): boolean {
  return a.apiVersion === b.apiVersion && a.kind === b.kind && a.name === b.name && a.namespace === b.namespace;
}

function keyOfReference({ uid, apiVersion, kind, name }: OwnerReference): string {
  return `${uid}\n${apiVersion}\n${kind}\n${name}`;
}

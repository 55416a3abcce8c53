/** Names by which those who deal with storage speak to each other: annotations, finalizers, provisioners. */

/** On a claim: the link to its volume is made; without the volume it is lost. */
export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
/** On a claim or a volume: the binder chose the other side, not a person. */
export const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller';
/** On a volume: who made it, and will unmake it. */
export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';
/** On a claim: who is to make its volume. */
export const STORAGE_PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
export const BETA_STORAGE_PROVISIONER = 'volume.beta.kubernetes.io/storage-provisioner';
/** On a claim: the node where its first pod will run. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
/** On claims and volumes of old: what is now `spec.storageClassName`. */
export const BETA_STORAGE_CLASS = 'volume.beta.kubernetes.io/storage-class';
/** On a storage class: claims that name none get this one. */
export const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';
export const BETA_DEFAULT_CLASS = 'storageclass.beta.kubernetes.io/is-default-class';

/** Keeps a claim that pods use. */
export const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';
/** Keeps a volume that is bound. */
export const VOLUME_PROTECTION = 'kubernetes.io/pv-protection';

/** Who makes volumes that are directories of this host, or of one node. */
export const DIRECTORY_PROVISIONER = 'godwit.dev/directories';
/** On a volume: the one node whose disk it is on; absent where all nodes of a host share it. */
export const VOLUME_NODE = 'godwit.dev/node';
/** On a node: volumes whose directories its agent has removed, so that the objects can go too. */
export const REMOVED_VOLUMES = 'godwit.dev/removed-volumes';
/** On a node: the directory below which volumes of this node are. */
export const LOCAL_STORAGE_PATH = 'godwit.dev/local-storage-path';

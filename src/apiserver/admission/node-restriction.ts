import { objectAt, objectsAt, textAt } from '../../api/kinds/core/fields.ts';
import type { KubeObject } from '../../api/meta.ts';
import { bucketOf } from '../../api/resource.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { nodeOfUser, NODE_USER_PREFIX } from '../../machinery/node-user.ts';
import { parseCertificateRequest } from '../../machinery/x509/certificate-request.ts';
import { NODE_CLIENT_SIGNER, NODE_SERVING_SIGNER } from '../../machinery/x509/node-certificates.ts';
import { MIRROR_ANNOTATION, podReferences } from '../auth/pod-references.ts';
import { requestPemOf } from '../kinds/certificate-policy.ts';
import type { AdmissionAttributes, AdmissionPlugin, Registry } from '../registry/contract.ts';
import { nameOf, refusal, subresourceOf } from './attributes.ts';
import { forbiddenLabels } from './node-labels.ts';

/**
 * What nodes may write, as far as it depends on what is written: their own Node and lease, the status of their own
 * pods, certificates for themselves, tokens for their pods. Authorization has said which doors are open to nodes; this
 * looks at what they carry through. As kube-apiserver's plug-in of this name.
 */

const LEASES_NAMESPACE = 'kube-node-lease';

type Check = (attributes: AdmissionAttributes, node: string) => Promise<void> | void;

export class NodeRestriction implements AdmissionPlugin {
  readonly name = 'NodeRestriction';
  readonly #registry: Pick<Registry, 'view'>;
  readonly #checks: ReadonlyMap<string, Check> = new Map<string, Check>([
    ['pods', (attributes, node) => this.#pod(attributes, node)],
    ['nodes', checkNode],
    ['serviceaccounts', (attributes, node) => this.#token(attributes, node)],
    ['leases.coordination.k8s.io', checkLease],
    ['certificatesigningrequests.certificates.k8s.io', checkCertificateRequest],
  ]);

  constructor(registry: Pick<Registry, 'view'>) {
    this.#registry = registry;
  }

  handles({ context, target }: AdmissionAttributes): boolean {
    return nodeOfUser(context.user) !== undefined && this.#checks.has(bucketOf(target.definition));
  }

  validate(attributes: AdmissionAttributes): Promise<void> | void {
    const { user } = attributes.context;
    const node = nodeOfUser(user) ?? '';
    if (node === '') throw refusal(attributes, `could not determine node from user ${JSON.stringify(user.username)}`);
    return this.#checks.get(bucketOf(attributes.target.definition))?.(attributes, node);
  }

  #pod(attributes: AdmissionAttributes, node: string): void {
    const { operation, oldObject } = attributes;
    const subresource = subresourceOf(attributes);
    switch (subresource === '' ? operation : `${operation}/${subresource}`) {
      case 'CREATE':
        return this.#mirrorPod(attributes, node);
      case 'DELETE':
        return mustBeOwn(attributes, node, oldObject, 'delete pods');
      case 'UPDATE/status':
        mustBeOwn(attributes, node, oldObject, 'update pod status for pods');
        if (!deepEqual(attributes.object?.metadata.labels ?? {}, oldObject?.metadata.labels ?? {}))
          throw refusal(attributes, `node ${quoted(node)} cannot update labels through pod status`);
        return;
      case 'CREATE/eviction':
        return mustBeOwn(attributes, node, this.#evicted(attributes), 'evict pods');
      default:
        throw refusal(
          attributes,
          subresource === ''
            ? `unexpected operation ${quoted(operation)}, node ${quoted(node)} can only create and delete mirror pods`
            : `unexpected pod subresource ${quoted(subresource)}, only 'status' and 'eviction' are allowed`,
        );
    }
  }

  /** The pod that an eviction is for; what is not there is for the eviction to say. */
  #evicted(attributes: AdmissionAttributes): KubeObject | undefined {
    return this.#registry.view('pods').get(attributes.target.namespace, nameOf(attributes));
  }

  /** A node may show what it runs by itself, but not by that way get at what the cluster keeps. */
  #mirrorPod(attributes: AdmissionAttributes, node: string): void {
    const { object } = attributes;
    if (!object) return;
    const who = `node ${quoted(node)}`;
    if (!Object.hasOwn(object.metadata.annotations ?? {}, MIRROR_ANNOTATION))
      throw refusal(
        attributes,
        `pod does not have "${MIRROR_ANNOTATION}" annotation, ${who} can only create mirror pods`,
      );
    mustBeOwn(attributes, node, object, 'create pods');
    const { secrets, configMaps, claims, serviceAccount } = podReferences(object);
    const referenced: [string, boolean][] = [
      ['service account', serviceAccount !== ''],
      ['secret', secrets.size > 0],
      ['configmap', configMaps.size > 0],
      ['persistentvolumeclaim', claims.size > 0],
    ];
    for (const [what, isReferenced] of referenced)
      if (isReferenced) throw refusal(attributes, `${who} can not create pods that reference a ${what}`);
    const owners = object.metadata.ownerReferences ?? [];
    const uid = this.#registry.view('nodes').get('', node)?.metadata.uid;
    const isOwned = owners.every((owner) => owner.kind === 'Node' && owner.name === node && owner.uid === uid);
    if (owners.length !== 1 || !isOwned)
      throw refusal(attributes, `${who} can only create pods with an owner reference set to itself`);
  }

  #token(attributes: AdmissionAttributes, node: string): void {
    const { operation, object, target } = attributes;
    if (operation !== 'CREATE' || subresourceOf(attributes) !== 'token') return;
    const reference = objectAt(objectAt(object, 'spec'), 'boundObjectRef');
    if (textAt(reference, 'kind') !== 'Pod' || textAt(reference, 'name') === '')
      throw refusal(attributes, 'node requested token not bound to a pod');
    const uid = textAt(reference, 'uid');
    if (uid === '') throw refusal(attributes, 'node requested token with a pod binding without a uid');
    const pod = this.#registry.view('pods').get(target.namespace, textAt(reference, 'name'));
    if (pod?.metadata.uid !== uid)
      throw refusal(attributes, `the UID in the bound object reference (${uid}) does not match the UID in record`);
    if (nodeNameOf(pod) !== node)
      throw refusal(attributes, 'node requested token bound to a pod scheduled on a different node');
    if (textAt(objectAt(pod, 'spec'), 'serviceAccountName') !== target.name)
      throw refusal(attributes, 'node requested token for a service account that its pod does not have');
  }
}

function mustBeOwn(attributes: AdmissionAttributes, node: string, pod: KubeObject | undefined, what: string): void {
  if (pod && nodeNameOf(pod) !== node)
    throw refusal(attributes, `node ${quoted(node)} can only ${what} with spec.nodeName set to itself`);
}

function nodeNameOf(pod: KubeObject | undefined): string {
  return textAt(objectAt(pod, 'spec'), 'nodeName');
}

function checkNode(attributes: AdmissionAttributes, node: string): void {
  const { operation, object, oldObject } = attributes;
  const who = `node ${quoted(node)}`;
  const name = nameOf(attributes);
  if (name !== node) throw refusal(attributes, `${who} is not allowed to modify node ${quoted(name)}`);
  if (!object || (operation !== 'CREATE' && operation !== 'UPDATE')) return;
  const refusedLabels = forbiddenLabels(object.metadata.labels ?? {}, oldObject?.metadata.labels ?? {});
  if (refusedLabels.length > 0) {
    const verb = oldObject ? 'modify labels' : 'set the following labels';
    throw refusal(attributes, `${who} is not allowed to ${verb}: ${refusedLabels.join(', ')}`);
  }
  // Who owns a node decides when it is garbage: with it go its taints.
  if (!deepEqual(object.metadata.ownerReferences ?? [], oldObject?.metadata.ownerReferences ?? []))
    throw refusal(attributes, `${who} is not allowed to modify ownerReferences`);
  if (oldObject && !deepEqual(taintsOf(object), taintsOf(oldObject)))
    throw refusal(attributes, `${who} is not allowed to modify taints`);
}

function taintsOf(node: KubeObject): object[] {
  return objectsAt(objectAt(node, 'spec'), 'taints');
}

function checkLease(attributes: AdmissionAttributes, node: string): void {
  if (attributes.target.namespace !== LEASES_NAMESPACE)
    throw refusal(attributes, `can only access leases in the ${quoted(LEASES_NAMESPACE)} system namespace`);
  if (nameOf(attributes) !== node)
    throw refusal(attributes, 'can only access node lease with the same name as the requesting node');
}

/** A node asks for certificates for itself alone, whoever would approve them. */
async function checkCertificateRequest(attributes: AdmissionAttributes, node: string): Promise<void> {
  const { operation, object } = attributes;
  if (operation !== 'CREATE' || !object) return;
  const signer = textAt(objectAt(object, 'spec'), 'signerName');
  if (signer !== NODE_CLIENT_SIGNER && signer !== NODE_SERVING_SIGNER) return;
  const wanted = `${NODE_USER_PREFIX}${node}`;
  // What cannot be read is refused by another plug-in, with the reason.
  const { commonName } = await parseCertificateRequest(requestPemOf(object)).catch(() => ({ commonName: wanted }));
  if (commonName !== wanted) throw refusal(attributes, `can only create a node CSR with CN=${wanted}`);
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

import { objectAt, textAt } from '../../api/kinds/core/fields.ts';
import { nodeOfUser } from '../../machinery/node-user.ts';
import type { UserInfo } from '../http/message.ts';
import type { Registry } from '../registry/contract.ts';
import { unconfinedNodeRules } from './bootstrap-rules.ts';
import type { NodePods, Referenced } from './node-pods.ts';
import { type AuthorizationAttributes, combinedResource, CompiledRule } from './policy-rule.ts';
import type { Authorizer, Decision } from './rbac.ts';

/**
 * What a node may do, as kube-apiserver's Node authorizer has it: read what the pods that are bound to it refer to, and
 * nothing else of that kind; speak of itself and of its pods. What it may write into those is checked at admission
 * (NodeRestriction). It never refuses: what it does not allow, roles may.
 */

const LEASES = 'kube-node-lease';

const ALLOWED: Decision = { allowed: true, reason: '' };
const NO_OPINION: Decision = { allowed: false, reason: '' };

function unless(reason: string, isAllowed: boolean): Decision {
  return isAllowed ? ALLOWED : { allowed: false, reason };
}

export class NodeAuthorizer implements Authorizer {
  readonly #pods: Pick<NodePods, 'isBound' | 'refers'>;
  readonly #registry: Pick<Registry, 'view'>;
  readonly #unconfined = unconfinedNodeRules().map((rule) => new CompiledRule(rule));

  constructor(pods: Pick<NodePods, 'isBound' | 'refers'>, registry: Pick<Registry, 'view'>) {
    this.#pods = pods;
    this.#registry = registry;
  }

  authorize(user: UserInfo, attributes: AuthorizationAttributes): Decision {
    const node = nodeOfUser(user);
    if (node === undefined) return NO_OPINION;
    if (node === '') return unless(`unknown node for user ${JSON.stringify(user.username)}`, false);
    const confined = attributes.isResource ? this.#confined(node, attributes) : undefined;
    if (confined) return confined;
    const resource = combinedResource(attributes);
    return this.#unconfined.some((rule) => rule.allows(attributes, resource)) ? ALLOWED : NO_OPINION;
  }

  /** The decision about resources of which a node gets only its own; undefined for others. */
  #confined(node: string, attributes: AuthorizationAttributes): Decision | undefined {
    switch (attributes.group === '' ? attributes.resource : `${attributes.resource}.${attributes.group}`) {
      case 'secrets':
      case 'configmaps':
        return this.#readNamed(node, attributes, attributes.resource as Referenced, ['get', 'list', 'watch']);
      case 'persistentvolumeclaims':
        return this.#readNamed(node, attributes, 'persistentvolumeclaims', ['get']);
      case 'persistentvolumes':
        return this.#readVolume(node, attributes);
      case 'serviceaccounts':
        return this.#makeToken(node, attributes);
      case 'nodes':
        return ownNode(node, attributes);
      case 'pods':
        return this.#ownPods(node, attributes);
      case 'leases.coordination.k8s.io':
        return ownLease(node, attributes);
      default:
        return undefined;
    }
  }

  #readNamed(node: string, attributes: AuthorizationAttributes, what: Referenced, verbs: readonly string[]): Decision {
    const { verb, name, namespace, subresource } = attributes;
    if (!verbs.includes(verb) || subresource !== '' || name === '')
      return unless(`can only ${verbs.join('/')} individual resources of this type`, false);
    return unless(unrelated(node), this.#pods.refers(node, what, namespace, name));
  }

  #readVolume(node: string, { verb, name, subresource }: AuthorizationAttributes): Decision {
    if (verb !== 'get' || subresource !== '' || name === '')
      return unless('can only get individual resources of this type', false);
    const volume = this.#registry.view('persistentvolumes').get('', name);
    const claim = objectAt(objectAt(volume, 'spec'), 'claimRef');
    const [namespace, claimName] = [textAt(claim, 'namespace'), textAt(claim, 'name')];
    return unless(unrelated(node), this.#pods.refers(node, 'persistentvolumeclaims', namespace, claimName));
  }

  #makeToken(node: string, { verb, name, namespace, subresource }: AuthorizationAttributes): Decision {
    if (verb !== 'create' || subresource !== 'token' || name === '')
      return unless('can only create tokens for individual service accounts', false);
    return unless(unrelated(node), this.#pods.refers(node, 'serviceaccounts', namespace, name));
  }

  /** A node that missed a deletion must be able to tell a pod that is gone from one that is not its own. */
  #isGone(namespace: string, name: string): boolean {
    return this.#registry.view('pods').get(namespace, name) === undefined;
  }

  #ownPods(node: string, attributes: AuthorizationAttributes): Decision {
    const { verb, name, namespace, subresource } = attributes;
    switch (subresource === '' ? verb : `${verb}/${subresource}`) {
      case 'get':
        return unless(unrelated(node), this.#pods.isBound(node, namespace, name) || this.#isGone(namespace, name));
      case 'list':
      case 'watch':
        return unless('can only list/watch pods with spec.nodeName field selector', selectsNode(attributes, node));
      // Which ones, is for admission to say.
      case 'create':
      case 'delete':
      case 'update/status':
      case 'patch/status':
      case 'create/eviction':
        return ALLOWED;
      default:
        return NO_OPINION;
    }
  }
}

function unrelated(node: string): string {
  return `no relationship found between node '${node}' and this object`;
}

function selectsNode({ fieldRequirements = [] }: AuthorizationAttributes, node: string): boolean {
  return fieldRequirements.some(({ path, equals, value }) => path === 'spec.nodeName' && equals && value === node);
}

function ownNode(node: string, { verb, name, subresource }: AuthorizationAttributes): Decision {
  const isRead = subresource === '' && ['get', 'list', 'watch'].includes(verb);
  const isWrite = ['', 'status'].includes(subresource) && ['update', 'patch'].includes(verb);
  if (isRead || isWrite)
    return unless(
      `node '${node}' cannot ${isRead ? 'read' : 'modify'} '${name}', only its own Node object`,
      name === node,
    );
  // The name is in the body, which admission looks into.
  return subresource === '' && verb === 'create' ? ALLOWED : NO_OPINION;
}

function ownLease(node: string, { verb, name, namespace }: AuthorizationAttributes): Decision {
  if (!['get', 'create', 'update', 'patch', 'delete'].includes(verb))
    return unless('can only get, create, update, patch, or delete a node lease', false);
  if (namespace !== LEASES)
    return unless(`can only access leases in the ${JSON.stringify(LEASES)} system namespace`, false);
  const isOwn = name === node || (verb === 'create' && name === '');
  return unless('can only access node lease with the same name as the requesting node', isOwn);
}

/** Asks one after the other: what one allows is allowed, and whoever refuses gives all reasons. */
export class AuthorizerChain implements Authorizer {
  readonly #authorizers: readonly Authorizer[];

  constructor(...authorizers: readonly Authorizer[]) {
    this.#authorizers = authorizers;
  }

  authorize(user: UserInfo, attributes: AuthorizationAttributes): Decision {
    const reasons: string[] = [];
    for (const authorizer of this.#authorizers) {
      const decision = authorizer.authorize(user, attributes);
      if (decision.allowed) return decision;
      if (decision.reason !== '') reasons.push(decision.reason);
    }
    return { allowed: false, reason: reasons.join('\n') };
  }
}

import { objectAt, objectsAt, textAt, textsAt } from '../../api/kinds/core/fields.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { Authorizer } from '../auth/rbac.ts';
import type { Usage } from '../../machinery/x509/authority.ts';
import type { CertificateRequest } from '../../machinery/x509/certificate-request.ts';
import {
  NODE_CLIENT_SIGNER,
  NODE_SERVING_SIGNER,
  nodeClientRefusal,
  nodeServingRefusal,
} from '../../machinery/x509/node-certificates.ts';
import type { UserInfo } from '../http/message.ts';

/** What each of Kubernetes' own signers certifies, and for whom. */

export const CERTIFICATES_GROUP = 'certificates.k8s.io';
export const REQUESTS_BUCKET = `certificatesigningrequests.${CERTIFICATES_GROUP}`;
export const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client';

/** A signer's rule: what its certificates are good for, and what is wrong with a request (undefined: nothing). */
export interface SignerPolicy {
  readonly usages: readonly Usage[];
  refusal(request: CertificateRequest, usages: readonly string[]): string | undefined;
}

/** The signers that this server has, by name. */
export const signerPolicies: ReadonlyMap<string, SignerPolicy> = new Map([
  [CLIENT_SIGNER, { usages: ['client'], refusal: clientRefusal }],
  [NODE_CLIENT_SIGNER, { usages: ['client'], refusal: nodeClientRefusal }],
  [NODE_SERVING_SIGNER, { usages: ['server'], refusal: nodeServingRefusal }],
]);

function clientRefusal(_request: CertificateRequest, usages: readonly string[]): string | undefined {
  const foreign = usages.find((usage) => !['digital signature', 'key encipherment', 'client auth'].includes(usage));
  if (foreign !== undefined) return `invalid usage for client certificate: ${foreign}`;
  return usages.includes('client auth') ? undefined : 'missing required usage for client certificate: client auth';
}

/** Why the server approves a request by itself, or undefined where a person has to. */
export function automaticApproval(
  authorizer: Authorizer,
  object: KubeObject,
  request: CertificateRequest,
): string | undefined {
  const spec = objectAt(object, 'spec');
  if (textAt(spec, 'signerName') !== NODE_CLIENT_SIGNER) return undefined;
  if (nodeClientRefusal(request, textsAt(spec, 'usages')) !== undefined) return undefined;
  const requester: UserInfo = { username: textAt(spec, 'username'), groups: textsAt(spec, 'groups') };
  const may = (subresource: string): boolean =>
    authorizer.authorize(requester, {
      verb: 'create',
      isResource: true,
      path: '',
      group: CERTIFICATES_GROUP,
      namespace: '',
      resource: 'certificatesigningrequests',
      subresource,
      name: '',
    }).allowed;
  if (requester.username === request.commonName && may('selfnodeclient')) {
    return 'Auto approving self kubelet client certificate after SubjectAccessReview.';
  }
  return may('nodeclient') ? 'Auto approving kubelet client certificate after SubjectAccessReview.' : undefined;
}

/** Whether the user may `approve` or `sign` for a signer: by its name, or by all of its domain (`example.com/*`). */
export function mayUseSigner(authorizer: Authorizer, user: UserInfo, verb: string, signerName: string): boolean {
  const domain = signerName.split('/', 1)[0] ?? '';
  return [signerName, `${domain}/*`].some(
    (name) =>
      authorizer.authorize(user, {
        verb,
        isResource: true,
        path: '',
        group: CERTIFICATES_GROUP,
        namespace: '',
        resource: 'signers',
        subresource: '',
        name,
      }).allowed,
  );
}

/** Whether a request has a condition of this type. */
export function hasCondition(object: KubeObject, type: string): boolean {
  const conditions = objectsAt(objectAt(object, 'status'), 'conditions');
  return conditions.some((each) => textAt(each, 'type') === type && textAt(each, 'status') === 'True');
}

/** The PEM text that a request carries. */
export function requestPemOf(object: KubeObject): string {
  return Buffer.from(textAt(objectAt(object, 'spec'), 'request'), 'base64').toString('utf8');
}

import type { KubeObject } from '../api/meta.ts';
import type { Client } from '../kube/client.ts';
import type { Resource } from '../kube/resource.ts';

interface SubjectAccessReview extends KubeObject {
  status?: { allowed?: boolean; reason?: string };
}

const subjectAccessReviews: Resource<SubjectAccessReview> = {
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'subjectaccessreviews',
  kind: 'SubjectAccessReview',
  namespaced: false,
};

/** Somebody, as the API server knows them. */
export interface Subject {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** What they want to do. */
export interface ResourceAttributes {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly version?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
}

/** Asks the API server whether somebody may do something. */
export async function isAllowed(
  client: Client,
  subject: Subject,
  resourceAttributes: ResourceAttributes,
  signal: AbortSignal,
): Promise<boolean> {
  const { username, groups, uid, extra } = subject;
  const { status } = await client.create(
    subjectAccessReviews,
    {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      metadata: {},
      spec: {
        ...(username === undefined ? {} : { user: username }),
        ...(groups === undefined ? {} : { groups }),
        ...(uid === undefined ? {} : { uid }),
        ...(extra === undefined ? {} : { extra }),
        resourceAttributes,
      },
    },
    signal,
  );
  return status?.allowed === true;
}

import {
  localSubjectAccessReviewDefinition,
  selfSubjectAccessReviewDefinition,
  selfSubjectRulesReviewDefinition,
  subjectAccessReviewDefinition,
} from '../../api/kinds/authorization/reviews.ts';
import { selfSubjectReviewDefinition, tokenReviewDefinition } from '../../api/kinds/authentication/reviews.ts';
import { objectAt, objectsAt, textAt, textsAt } from '../../api/kinds/core/fields.ts';
import { formatTime, type JsonObject, type KubeObject } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';
import { ApiError, badRequest, invalidObject } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import { nodeOfUser } from '../../machinery/node-user.ts';
import { type FieldRequirement, parseFieldSelector } from '../../machinery/selectors.ts';
import type { AuthorizationAttributes, PolicyRule } from '../auth/policy-rule.ts';
import type { Authorizer, RbacAuthorizer } from '../auth/rbac.ts';
import type { TokenVerifier } from '../auth/tokens.ts';
import type { UserInfo } from '../http/message.ts';

/** The kinds that are questions about users, asked by creating an object that is answered and never stored. */

/** What answers are made from. */
export interface ReviewContext {
  readonly authorizer: Authorizer;
  readonly roles: Pick<RbacAuthorizer, 'rulesFor'>;
  readonly tokens: TokenVerifier;
  readonly clock: Clock;
}

/** Answers one kind of question, asked by this user. */
export type Review = (user: UserInfo, object: KubeObject) => Promise<KubeObject>;

/** Every review by its bucket, e.g. `tokenreviews.authentication.k8s.io`. */
export function reviews(context: ReviewContext): ReadonlyMap<string, Review> {
  const answers: [ResourceDefinition, (user: UserInfo, object: KubeObject) => KubeObject | Promise<KubeObject>][] = [
    [tokenReviewDefinition, (_user, object) => reviewToken(context, object)],
    [selfSubjectReviewDefinition, (user, object) => reviewSelf(context, user, object)],
    [subjectAccessReviewDefinition, (_user, object) => reviewAccess(context, subjectOf(object), object)],
    [localSubjectAccessReviewDefinition, (_user, object) => reviewAccess(context, subjectOf(object), object)],
    [selfSubjectAccessReviewDefinition, (user, object) => reviewAccess(context, user, object)],
    [selfSubjectRulesReviewDefinition, (user, object) => reviewRules(context, user, object)],
  ];
  return new Map(
    answers.map(([definition, answer]) => [
      bucketOf(definition),
      async (user, object) => {
        const errors = definition.strategy?.validate?.(object) ?? [];
        if (errors.length > 0) throw invalidObject(definition.group, definition.kind, '', errors);
        return answer(user, object);
      },
    ]),
  );
}

/** Whose the token in the spec is; a token that does not hold is an answer, not an error. */
async function reviewToken(context: ReviewContext, review: KubeObject): Promise<KubeObject> {
  const spec = objectAt(review, 'spec');
  const token = textAt(spec, 'token');
  if (token === '') throw badRequest('token is required for TokenReview in authentication');
  const audiences = textsAt(spec, 'audiences');
  const verdict = await context.tokens.verify(token, audiences.length > 0 ? audiences : undefined);
  const status = verdict.valid
    ? { authenticated: true, user: userInfoOf(verdict.user), audiences: verdict.audiences }
    : { authenticated: false, user: {}, error: verdict.error };
  return { ...review, status };
}

/** Who is asking. */
function reviewSelf(context: ReviewContext, user: UserInfo, review: KubeObject): KubeObject {
  return {
    ...review,
    metadata: { creationTimestamp: formatTime(context.clock.now()) },
    status: { userInfo: userInfoOf(user) },
  };
}

/** Whether the user may do what the spec says. */
function reviewAccess(context: ReviewContext, user: UserInfo, review: KubeObject): KubeObject {
  const { allowed, reason } = context.authorizer.authorize(user, attributesOf(objectAt(review, 'spec')));
  return { ...review, status: { allowed, ...(reason === '' ? {} : { reason }) } };
}

/** All that the user may do in the namespace. */
function reviewRules(context: ReviewContext, user: UserInfo, review: KubeObject): KubeObject {
  const namespace = textAt(objectAt(review, 'spec'), 'namespace');
  if (namespace === '') throw badRequest('no namespace on request');
  const found = context.roles.rulesFor(user, namespace);
  // What a node may do is not written down in rules: it depends on the pods that it has.
  const nodeError = nodeOfUser(user) === undefined ? '' : 'node authorizer does not support user rule resolution';
  const evaluationError = [nodeError, found.evaluationError].filter((each) => each !== '').join(', ');
  return {
    ...review,
    status: {
      resourceRules: found.resourceRules.map(resourceRule),
      nonResourceRules: found.nonResourceRules.map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs })),
      incomplete: found.incomplete || nodeError !== '',
      ...(evaluationError === '' ? {} : { evaluationError }),
    },
  };
}

function resourceRule({ verbs, apiGroups, resources, resourceNames }: PolicyRule): PolicyRule {
  return { verbs, apiGroups, resources, ...(resourceNames && resourceNames.length > 0 ? { resourceNames } : {}) };
}

function subjectOf(review: KubeObject): UserInfo {
  const spec = objectAt(review, 'spec');
  return { username: textAt(spec, 'user'), groups: textsAt(spec, 'groups') };
}

function attributesOf(spec: JsonObject | undefined): AuthorizationAttributes {
  const resource = objectAt(spec, 'resourceAttributes');
  const path = objectAt(spec, 'nonResourceAttributes');
  return {
    isResource: resource !== undefined,
    verb: textAt(resource ?? path, 'verb'),
    path: textAt(path, 'path'),
    group: textAt(resource, 'group'),
    namespace: textAt(resource, 'namespace'),
    resource: textAt(resource, 'resource'),
    subresource: textAt(resource, 'subresource'),
    name: textAt(resource, 'name'),
    fieldRequirements: requirementsOf(objectAt(resource, 'fieldSelector')),
  };
}

/** Of a selector that came in pieces, or whole. What cannot be understood is nothing that a decision could rest on. */
function requirementsOf(selector: JsonObject | undefined): FieldRequirement[] {
  const raw = textAt(selector, 'rawSelector');
  if (raw !== '') return requirementsIn(raw);
  return objectsAt(selector, 'requirements').flatMap((each) => {
    const [value, ...others] = textsAt(each, 'values');
    const isEqual = textAt(each, 'operator') === 'In' && value !== undefined && others.length === 0;
    return isEqual ? [{ path: textAt(each, 'key'), equals: true, value }] : [];
  });
}

function requirementsIn(text: string): FieldRequirement[] {
  try {
    return [...parseFieldSelector(text)];
  } catch (error) {
    if (error instanceof ApiError) return [];
    throw error;
  }
}

function userInfoOf(user: UserInfo): UserInfo {
  const { username, uid, groups, extra } = user;
  return { username, ...(uid === undefined ? {} : { uid }), groups: [...groups], ...(extra ? { extra } : {}) };
}

import type { ResourceDefinition } from '../../resource.ts';
import { bool, list, map, message, str } from '../../schema.ts';
import { builtin, objectSchema } from '../meta.ts';

/** authentication.k8s.io/v1: questions about who somebody is. Answered, never stored. */

const AUTHENTICATION = 'io.k8s.api.authentication.v1';

const tokenReviewSpec = message(`${AUTHENTICATION}.TokenReviewSpec`, 'The token to check.', {
  token: [1, str(), 'The bearer token.'],
  audiences: [2, list(str()), 'Whom the token has to be meant for; the API server when empty.'],
});

const userInfo = message(`${AUTHENTICATION}.UserInfo`, 'Who a request comes from.', {
  username: [1, str(), 'The name.'],
  uid: [2, str(), 'Tells apart users of the same name at different times.'],
  groups: [3, list(str()), 'The groups that the user is in.'],
  extra: [4, map(list(str())), 'What else the authenticator said.'],
});

const tokenReviewStatus = message(`${AUTHENTICATION}.TokenReviewStatus`, 'What the token is worth.', {
  authenticated: [1, bool(), 'Whether the token is known and valid.'],
  user: [2, userInfo, 'Whose token it is.'],
  audiences: [4, list(str()), 'The audiences that the token and the request have in common.'],
  error: [3, str(), 'Why the token could not be checked.'],
});

const tokenReview = objectSchema(
  `${AUTHENTICATION}.TokenReview`,
  'Asks the server whose a token is.',
  {
    spec: [2, tokenReviewSpec, 'What is asked for.'],
    status: [3, tokenReviewStatus, 'What was observed.'],
  },
  { required: ['spec'] },
);

const selfSubjectReviewStatus = message(`${AUTHENTICATION}.SelfSubjectReviewStatus`, 'Who is asking.', {
  userInfo: [1, userInfo, 'The user, as the server sees it.'],
});

const selfSubjectReview = objectSchema(`${AUTHENTICATION}.SelfSubjectReview`, 'Asks the server who is asking.', {
  status: [2, selfSubjectReviewStatus, 'What was observed.'],
});

/** Asks whose a token is. */
export const tokenReviewDefinition: ResourceDefinition = builtin({
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'tokenreviews',
  kind: 'TokenReview',
  namespaced: false,
  verbs: ['create'],
  schema: tokenReview,
});

/** Asks who is asking. */
export const selfSubjectReviewDefinition: ResourceDefinition = builtin({
  group: 'authentication.k8s.io',
  version: 'v1',
  plural: 'selfsubjectreviews',
  kind: 'SelfSubjectReview',
  namespaced: false,
  verbs: ['create'],
  schema: selfSubjectReview,
});

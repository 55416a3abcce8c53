import { child, type FieldError, invalid, required } from '../../field-error.ts';
import type { KubeObject, ObjectMeta } from '../../meta.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { bool, list, map, message, str } from '../../schema.ts';
import { type Fields, has, objectAt, objectsAt, textAt, textsAt } from '../core/fields.ts';
import { builtin, labelSelectorRequirement, objectSchema } from '../meta.ts';

/** authorization.k8s.io/v1: questions about what somebody may do. Answered, never stored. */

const AUTHORIZATION = 'io.k8s.api.authorization.v1';

const fieldSelectorRequirement = message(
  'io.k8s.apimachinery.pkg.apis.meta.v1.FieldSelectorRequirement',
  'A field and the values that it may have.',
  {
    key: [1, str(), 'The field.'],
    operator: [2, str(), 'In, NotIn, Exists or DoesNotExist.'],
    values: [3, list(str()), 'Values, for In and NotIn.'],
  },
  { required: ['key', 'operator'] },
);

const fieldSelectorAttributes = message(
  `${AUTHORIZATION}.FieldSelectorAttributes`,
  'The field selector of a list, for authorizers that look at it.',
  {
    rawSelector: [1, str(), 'The selector as it came.'],
    requirements: [2, list(fieldSelectorRequirement), 'The selector, parsed.'],
  },
);

const labelSelectorAttributes = message(
  `${AUTHORIZATION}.LabelSelectorAttributes`,
  'The label selector of a list, for authorizers that look at it.',
  {
    rawSelector: [1, str(), 'The selector as it came.'],
    requirements: [2, list(labelSelectorRequirement), 'The selector, parsed.'],
  },
);

const resourceAttributes = message(`${AUTHORIZATION}.ResourceAttributes`, 'A request for a resource.', {
  namespace: [1, str(), 'The namespace; empty means all, or none for cluster-scoped kinds.'],
  verb: [2, str(), 'The verb; `*` is all.'],
  group: [3, str(), 'The group; `*` is all.'],
  version: [4, str(), 'The version; `*` is all.'],
  resource: [5, str(), 'The resource; `*` is all.'],
  subresource: [6, str(), 'The subresource; empty means none.'],
  name: [7, str(), "The object's name; empty means all."],
  fieldSelector: [8, fieldSelectorAttributes, 'The field selector of a list.'],
  labelSelector: [9, labelSelectorAttributes, 'The label selector of a list.'],
});

const nonResourceAttributes = message(
  `${AUTHORIZATION}.NonResourceAttributes`,
  'A request for a path that is no resource.',
  {
    path: [1, str(), 'The path.'],
    verb: [2, str(), 'The verb: the method in lower case.'],
  },
);

const subjectAccessReviewSpec = message(
  `${AUTHORIZATION}.SubjectAccessReviewSpec`,
  'The question: may this user do that?',
  {
    resourceAttributes: [1, resourceAttributes, 'A request for a resource.'],
    nonResourceAttributes: [2, nonResourceAttributes, 'A request for a path that is no resource.'],
    user: [3, str(), 'The user that is asked about.'],
    groups: [4, list(str()), 'The groups that are asked about.'],
    extra: [5, map(list(str())), 'What else an authenticator would say of the user.'],
    uid: [6, str(), "The user's UID."],
  },
);

const subjectAccessReviewStatus = message(
  `${AUTHORIZATION}.SubjectAccessReviewStatus`,
  'The answer.',
  {
    allowed: [1, bool(), 'Whether it is allowed.'],
    denied: [4, bool(), 'Whether it is denied whatever other authorizers say.'],
    reason: [2, str(), 'Why, if known.'],
    evaluationError: [3, str(), 'What went wrong on the way to the answer.'],
  },
  { required: ['allowed'] },
);

const subjectAccessReview = objectSchema(
  `${AUTHORIZATION}.SubjectAccessReview`,
  'Asks whether some user may do something.',
  {
    spec: [2, subjectAccessReviewSpec, 'What is asked for.'],
    status: [3, subjectAccessReviewStatus, 'What was observed.'],
  },
  { required: ['spec'] },
);

const localSubjectAccessReview = objectSchema(
  `${AUTHORIZATION}.LocalSubjectAccessReview`,
  'Asks whether some user may do something in a namespace.',
  {
    spec: [2, subjectAccessReviewSpec, 'What is asked for.'],
    status: [3, subjectAccessReviewStatus, 'What was observed.'],
  },
  { required: ['spec'] },
);

const selfSubjectAccessReviewSpec = message(
  `${AUTHORIZATION}.SelfSubjectAccessReviewSpec`,
  'The question: may I do that?',
  {
    resourceAttributes: [1, resourceAttributes, 'A request for a resource.'],
    nonResourceAttributes: [2, nonResourceAttributes, 'A request for a path that is no resource.'],
  },
);

const selfSubjectAccessReview = objectSchema(
  `${AUTHORIZATION}.SelfSubjectAccessReview`,
  'Asks whether the asking user may do something.',
  {
    spec: [2, selfSubjectAccessReviewSpec, 'What is asked for.'],
    status: [3, subjectAccessReviewStatus, 'What was observed.'],
  },
  { required: ['spec'] },
);

const selfSubjectRulesReviewSpec = message(
  `${AUTHORIZATION}.SelfSubjectRulesReviewSpec`,
  'The question: what may I do there?',
  {
    namespace: [1, str(), 'The namespace that is asked about.'],
  },
);

const resourceRule = message(
  `${AUTHORIZATION}.ResourceRule`,
  'What may be done to which resources.',
  {
    verbs: [1, list(str()), 'The verbs; `*` is all.'],
    apiGroups: [2, list(str()), 'The groups; `*` is all.'],
    resources: [3, list(str()), 'The resources; `*` is all.'],
    resourceNames: [4, list(str()), 'The names that the rule is limited to; empty means all.'],
  },
  { required: ['verbs'] },
);

const nonResourceRule = message(
  `${AUTHORIZATION}.NonResourceRule`,
  'What may be done to which paths.',
  {
    verbs: [1, list(str()), 'The verbs; `*` is all.'],
    nonResourceURLs: [2, list(str()), 'The paths; a trailing `*` matches the rest.'],
  },
  { required: ['verbs'] },
);

const subjectRulesReviewStatus = message(
  `${AUTHORIZATION}.SubjectRulesReviewStatus`,
  'The answer.',
  {
    resourceRules: [1, list(resourceRule), 'Rules about resources, in no order.'],
    nonResourceRules: [2, list(nonResourceRule), 'Rules about paths, in no order.'],
    incomplete: [3, bool(), 'Whether there may be more that the server could not find out.'],
    evaluationError: [4, str(), 'What went wrong on the way to the answer.'],
  },
  { required: ['resourceRules', 'nonResourceRules', 'incomplete'] },
);

const selfSubjectRulesReview = objectSchema(
  `${AUTHORIZATION}.SelfSubjectRulesReview`,
  'Asks what the asking user may do in a namespace.',
  {
    spec: [2, selfSubjectRulesReviewSpec, 'What is asked for.'],
    status: [3, subjectRulesReviewStatus, 'What was observed.'],
  },
  { required: ['spec'] },
);

function attributesErrors(spec: Fields | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const hasResource = has(spec, 'resourceAttributes');
  const hasPath = has(spec, 'nonResourceAttributes');
  if (hasResource && hasPath) {
    const detail = 'cannot be specified in combination with resourceAttributes';
    errors.push(invalid('spec.nonResourceAttributes', spec?.['nonResourceAttributes'], detail));
  }
  if (!hasResource && !hasPath) {
    const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
    errors.push(invalid('spec.resourceAttributes', null, detail));
  }
  const attributes = objectAt(spec, 'resourceAttributes');
  for (const field of ['fieldSelector', 'labelSelector']) {
    errors.push(...selectorErrors(objectAt(attributes, field), child('spec.resourceAttributes', field)));
  }
  return errors;
}

function selectorErrors(selector: Fields | undefined, path: string): FieldError[] {
  if (selector === undefined) return [];
  const raw = textAt(selector, 'rawSelector');
  const count = objectsAt(selector, 'requirements').length;
  if (raw !== '' && count > 0) {
    return [invalid(child(path, 'rawSelector'), raw, 'may not specified at the same time as requirements')];
  }
  if (raw !== '' || count > 0) return [];
  const detail = `when ${path} is specified, requirements or rawSelector is required`;
  return [required(child(path, 'requirements'), detail)];
}

function subjectErrors(spec: Fields | undefined): FieldError[] {
  if (textAt(spec, 'user') !== '' || textsAt(spec, 'groups').length > 0) return [];
  return [invalid('spec.user', '', 'at least one of user or group must be specified')];
}

/** Metadata that the server itself fills is no fault of the asker. */
const SERVER_OWNED: ReadonlySet<string> = new Set(['managedFields', 'uid', 'creationTimestamp', 'generation']);

function metadataErrors(metadata: ObjectMeta, allowed: string, detail: string): FieldError[] {
  const isEmpty = Object.entries(metadata).every(
    ([field, value]) =>
      SERVER_OWNED.has(field) || field === allowed || value === undefined || value === null || value === '',
  );
  return isEmpty ? [] : [invalid('metadata', metadata, detail)];
}

function localErrors(review: KubeObject): FieldError[] {
  const spec = objectAt(review, 'spec');
  const errors = [
    ...attributesErrors(spec),
    ...subjectErrors(spec),
    ...metadataErrors(review.metadata, 'namespace', 'must be empty except for namespace'),
  ];
  const attributes = objectAt(spec, 'resourceAttributes');
  const namespace = textAt(attributes, 'namespace');
  if (attributes !== undefined && namespace !== (review.metadata.namespace ?? '')) {
    errors.push(invalid('spec.resourceAttributes.namespace', namespace, 'must match metadata.namespace'));
  }
  if (has(spec, 'nonResourceAttributes')) {
    const detail = 'disallowed on this kind of request';
    errors.push(invalid('spec.nonResourceAttributes', spec?.['nonResourceAttributes'], detail));
  }
  return errors;
}

/** Asks whether some user may do something. */
export const subjectAccessReviewDefinition: ResourceDefinition = builtin({
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'subjectaccessreviews',
  kind: 'SubjectAccessReview',
  namespaced: false,
  verbs: ['create'],
  schema: subjectAccessReview,
  strategy: {
    validate(review) {
      const spec = objectAt(review, 'spec');
      return [
        ...attributesErrors(spec),
        ...subjectErrors(spec),
        ...metadataErrors(review.metadata, '', 'must be empty'),
      ];
    },
  },
});

/** Asks whether some user may do something in a namespace. */
export const localSubjectAccessReviewDefinition: ResourceDefinition = builtin({
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'localsubjectaccessreviews',
  kind: 'LocalSubjectAccessReview',
  namespaced: true,
  verbs: ['create'],
  schema: localSubjectAccessReview,
  strategy: { validate: localErrors },
});

/** Asks whether the asking user may do something. */
export const selfSubjectAccessReviewDefinition: ResourceDefinition = builtin({
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectaccessreviews',
  kind: 'SelfSubjectAccessReview',
  namespaced: false,
  verbs: ['create'],
  schema: selfSubjectAccessReview,
  strategy: {
    validate: (review) => [
      ...attributesErrors(objectAt(review, 'spec')),
      ...metadataErrors(review.metadata, '', 'must be empty'),
    ],
  },
});

/** Asks what the asking user may do in a namespace. */
export const selfSubjectRulesReviewDefinition: ResourceDefinition = builtin({
  group: 'authorization.k8s.io',
  version: 'v1',
  plural: 'selfsubjectrulesreviews',
  kind: 'SelfSubjectRulesReview',
  namespaced: false,
  verbs: ['create'],
  schema: selfSubjectRulesReview,
});

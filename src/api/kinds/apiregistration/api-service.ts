import { type FieldError, invalid, required } from '../../field-error.ts';
import type { KubeObject } from '../../meta.ts';
import { dns1035LabelErrors, dnsSubdomainErrors, portNumberErrors } from '../../names.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { bool, bytes, int32, listMap, message, str, time } from '../../schema.ts';
import { ageColumn, column, nameColumn } from '../columns.ts';
import { type Fields, has, isSet, numberAt, objectAt, objectsAt, textAt } from '../core/fields.ts';
import { builtin, objectSchema } from '../meta.ts';
import { enumErrors } from '../validation.ts';

const APIREGISTRATION = 'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1';
const GROUP_PRIORITY_MAX = 20_000;
const VERSION_PRIORITY_MAX = 1000;

const serviceReference = message(`${APIREGISTRATION}.ServiceReference`, 'The service that answers.', {
  namespace: [1, str(), "The service's namespace."],
  name: [2, str(), "The service's name."],
  port: [3, int32({ pointer: true, default: 443 }), "The service's port."],
});

const apiServiceSpec = message(
  `${APIREGISTRATION}.APIServiceSpec`,
  'Who serves it, and how it ranks.',
  {
    service: [1, serviceReference, "The extension server's service; none means that it is served here."],
    group: [2, str(), 'The API group.'],
    version: [3, str(), 'The API version.'],
    insecureSkipTLSVerify: [4, bool(), "Whether the server's certificate goes unchecked; better not."],
    caBundle: [5, bytes(), "The certificates, in PEM, that the server's certificate is checked against."],
    groupPriorityMinimum: [7, int32(), 'Groups of higher priority come first.'],
    versionPriority: [8, int32(), 'Versions of higher priority come first in their group.'],
  },
  { required: ['groupPriorityMinimum', 'versionPriority'] },
);

const apiServiceCondition = message(
  `${APIREGISTRATION}.APIServiceCondition`,
  'One aspect of the state.',
  {
    type: [1, str(), 'Available.'],
    status: [2, str(), 'True, False or Unknown.'],
    lastTransitionTime: [3, time(), 'When the status last changed.'],
    reason: [4, str(), 'One word for the cause.'],
    message: [5, str(), 'The cause in words.'],
  },
  { required: ['type', 'status'] },
);

const apiServiceStatus = message(`${APIREGISTRATION}.APIServiceStatus`, 'Whether it can be reached.', {
  conditions: [1, listMap(['type'], apiServiceCondition), 'Aspects of the current state, one of each type.'],
});

const apiService = objectSchema(
  `${APIREGISTRATION}.APIService`,
  'A group and version of the API, served here or by an extension server.',
  {
    spec: [2, apiServiceSpec, 'What is asked for.'],
    status: [3, apiServiceStatus, 'What was observed.'],
  },
);

function priorityErrors(spec: Fields | undefined, field: string, max: number): FieldError[] {
  const value = numberAt(spec, field) ?? 0;
  if (!has(spec, field) || (value > 0 && value <= max)) return [];
  return [invalid(`spec.${field}`, value, `must be positive and less than ${max}`)];
}

function specErrors(object: KubeObject): FieldError[] {
  const spec = objectAt(object, 'spec');
  const group = textAt(spec, 'group');
  const version = textAt(spec, 'version');
  const errors: FieldError[] = [];
  const { name = '' } = object.metadata;
  if (name !== `${version}.${group}`) {
    const detail = `must be \`spec.version+"."+spec.group\`: ${JSON.stringify(`${version}.${group}`)}`;
    errors.push(invalid('metadata.name', name, detail));
  }
  if (group !== '') {
    errors.push(...dnsSubdomainErrors(group).map((detail) => invalid('spec.group', group, detail)));
  } else if (version !== 'v1') {
    errors.push(required('spec.group', 'only v1 may have an empty group and it better be legacy kube'));
  }
  errors.push(...dns1035LabelErrors(version).map((detail) => invalid('spec.version', version, detail)));
  return [
    ...errors,
    ...priorityErrors(spec, 'groupPriorityMinimum', GROUP_PRIORITY_MAX),
    ...priorityErrors(spec, 'versionPriority', VERSION_PRIORITY_MAX),
    ...(has(spec, 'service') ? remoteErrors(spec) : localErrors(spec)),
  ];
}

function localErrors(spec: Fields | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const caBundle = textAt(spec, 'caBundle');
  if (caBundle !== '') {
    errors.push(invalid('spec.caBundle', `${caBundle.length} bytes`, 'local APIServices may not have a caBundle'));
  }
  if (isSet(spec, 'insecureSkipTLSVerify')) {
    const detail = 'local APIServices may not have insecureSkipTLSVerify';
    errors.push(invalid('spec.insecureSkipTLSVerify', true, detail));
  }
  return errors;
}

function remoteErrors(spec: Fields | undefined): FieldError[] {
  const service = objectAt(spec, 'service');
  const errors = ['namespace', 'name']
    .filter((field) => textAt(service, field) === '')
    .map((field) => required(`spec.service.${field}`));
  const port = numberAt(service, 'port');
  const portErrors = port === undefined ? [] : portNumberErrors(port);
  if (portErrors.length > 0) {
    errors.push(invalid('spec.service.port', port, `port is not valid: ${portErrors.join(', ')}`));
  }
  if (isSet(spec, 'insecureSkipTLSVerify') && textAt(spec, 'caBundle') !== '') {
    errors.push(invalid('spec.insecureSkipTLSVerify', true, 'may not be true if caBundle is present'));
  }
  return errors;
}

function availableText(status: Fields | undefined): string {
  const condition = objectsAt(status, 'conditions').find((each) => each['type'] === 'Available');
  if (condition === undefined) return 'Unknown';
  const value = textAt(condition, 'status');
  const reason = textAt(condition, 'reason');
  return value === 'True' || reason === '' ? value : `${value} (${reason})`;
}

/** A service's own API is there as soon as it is registered. */
function freshStatus(object: KubeObject): Fields {
  if (has(objectAt(object, 'spec'), 'service')) return {};
  const condition = {
    type: 'Available',
    status: 'True',
    lastTransitionTime: object.metadata.creationTimestamp ?? null,
    reason: 'Local',
    message: 'Local APIServices are always available',
  };
  return { conditions: [condition] };
}

/** apiregistration.k8s.io/v1 APIService. */
export const apiServiceDefinition: ResourceDefinition = builtin({
  group: 'apiregistration.k8s.io',
  version: 'v1',
  plural: 'apiservices',
  kind: 'APIService',
  namespaced: false,
  needsResourceVersion: true,
  categories: ['api-extensions'],
  schema: apiService,
  nameRule: 'path-segment',
  hasStatus: true,
  columns: [
    nameColumn,
    column('Service', 'string', 'The service that serves it, or Local.', (spec) => {
      const service = objectAt(spec, 'service');
      return service === undefined ? 'Local' : `${textAt(service, 'namespace')}/${textAt(service, 'name')}`;
    }),
    column('Available', 'string', 'Whether it can be reached.', (_spec, status) => availableText(status)),
    ageColumn,
  ],
  strategy: {
    prepareForCreate(object) {
      object.status = freshStatus(object);
    },
    validate: specErrors,
    validateStatusUpdate: (object) =>
      objectsAt(objectAt(object, 'status'), 'conditions').flatMap((condition, index) =>
        enumErrors(condition, `status.conditions[${index}]`, 'status', ['True', 'False', 'Unknown']),
      ),
  },
});

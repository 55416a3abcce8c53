import { bool, embedded, message, quantity, str } from '../../../schema.ts';
import { CORE } from './package.ts';

/** Schemas of where a container's environment variables come from. */

export const objectFieldSelector = message(
  `${CORE}.ObjectFieldSelector`,
  'Names a field of the pod itself.',
  {
    apiVersion: [1, str(), 'Version of the schema that the path is written in; v1 unless told otherwise.'],
    fieldPath: [2, str(), 'The path, e.g. metadata.name or status.podIP.'],
  },
  { required: ['fieldPath'], 'x-kubernetes-map-type': 'atomic' },
);

export const resourceFieldSelector = message(
  `${CORE}.ResourceFieldSelector`,
  'Names a resource request or limit of a container.',
  {
    containerName: [1, str(), 'The container; required for volumes, this container for variables.'],
    resource: [2, str(), 'The resource, e.g. limits.cpu.'],
    divisor: [3, quantity(), 'The unit to express it in; 1 by default.'],
  },
  { required: ['resource'], 'x-kubernetes-map-type': 'atomic' },
);

const configMapKeySelector = message(
  `${CORE}.ConfigMapKeySelector`,
  'Names a key of a config map.',
  {
    ...embedded(1, {
      name: [1, str(), 'Name of the config map.'],
    }),
    key: [2, str(), 'The key.'],
    optional: [3, bool({ pointer: true }), 'Whether the config map or its key may be missing.'],
  },
  { required: ['key'], 'x-kubernetes-map-type': 'atomic' },
);

const secretKeySelector = message(
  `${CORE}.SecretKeySelector`,
  'Names a key of a secret.',
  {
    ...embedded(1, {
      name: [1, str(), 'Name of the secret.'],
    }),
    key: [2, str(), 'The key.'],
    optional: [3, bool({ pointer: true }), 'Whether the secret or its key may be missing.'],
  },
  { required: ['key'], 'x-kubernetes-map-type': 'atomic' },
);

const fileKeySelector = message(
  `${CORE}.FileKeySelector`,
  'Names a variable in a file of an emptyDir volume.',
  {
    volumeName: [1, str(), 'The volume that holds the file.'],
    path: [2, str(), 'Path of the file within the volume.'],
    key: [3, str(), 'The variable in the file.'],
    optional: [4, bool({ pointer: true }), 'Whether the file or the variable may be missing.'],
  },
  { required: ['volumeName', 'path', 'key'], 'x-kubernetes-map-type': 'atomic' },
);

const envVarSource = message(
  `${CORE}.EnvVarSource`,
  'Where the value of an environment variable comes from; exactly one field is set.',
  {
    fieldRef: [1, objectFieldSelector, 'A field of the pod.'],
    resourceFieldRef: [2, resourceFieldSelector, 'A resource request or limit.'],
    configMapKeyRef: [3, configMapKeySelector, 'A key of a config map.'],
    secretKeyRef: [4, secretKeySelector, 'A key of a secret.'],
    fileKeyRef: [5, fileKeySelector, 'A variable in a file of a volume.'],
  },
);

export const envVar = message(
  `${CORE}.EnvVar`,
  'An environment variable of a container.',
  {
    name: [1, str(), 'Name of the variable.'],
    value: [2, str(), 'Its value; $(NAME) refers to a variable defined before it.'],
    valueFrom: [3, envVarSource, 'Where the value comes from; not together with value.'],
  },
  { required: ['name'] },
);

const configMapEnvSource = message(`${CORE}.ConfigMapEnvSource`, 'A config map whose keys all become variables.', {
  ...embedded(1, {
    name: [1, str(), 'Name of the config map.'],
  }),
  optional: [2, bool({ pointer: true }), 'Whether the config map may be missing.'],
});

const secretEnvSource = message(`${CORE}.SecretEnvSource`, 'A secret whose keys all become variables.', {
  ...embedded(1, {
    name: [1, str(), 'Name of the secret.'],
  }),
  optional: [2, bool({ pointer: true }), 'Whether the secret may be missing.'],
});

export const envFromSource = message(
  `${CORE}.EnvFromSource`,
  'A set of variables taken from a config map or a secret.',
  {
    prefix: [1, str(), 'Put before each key.'],
    configMapRef: [2, configMapEnvSource, 'The config map to read.'],
    secretRef: [3, secretEnvSource, 'The secret to read.'],
  },
);

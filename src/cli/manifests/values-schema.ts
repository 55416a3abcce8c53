import type { Toleration } from '../../migration/fit/objects.ts';
import type { DeploymentSettings, Resources, Settings } from './settings.ts';

/**
 * What the chart's values are called, and of which type each is, as JSON Schema: Helm refuses whatever has another name, which would
 * be without effect. What they say is for the API server to judge; pure.
 */

/** A schema for each field. */
type Fields<T> = { readonly [K in keyof T]-?: object };

const TEXT = { type: 'string' };
const NUMBER = { type: 'integer' };
const FLAG = { type: 'boolean' };
/** `--set` makes numbers of what has no unit. */
const QUANTITY = { type: ['string', 'number'] };
const ANY_OBJECT = { type: 'object' };

const listOf = (items: object): object => ({ type: 'array', items });
const mapOf = (value: object): object => ({ type: 'object', additionalProperties: value });
const object = <T>(properties: Fields<T>): object => ({ type: 'object', additionalProperties: false, properties });

const RESOURCES = object<Resources>({ requests: mapOf(QUANTITY), limits: mapOf(QUANTITY) });
const DEPLOYMENT: Fields<DeploymentSettings> = { replicas: NUMBER, resources: RESOURCES, arguments: listOf(TEXT) };

const VALUES: Fields<Settings> = {
  image: TEXT,
  imagePullPolicy: TEXT,
  imagePullSecrets: listOf(object<{ name: string }>({ name: TEXT })),
  logLevel: TEXT,
  tolerations: listOf(
    object<Toleration>({ key: TEXT, operator: TEXT, value: TEXT, effect: TEXT, tolerationSeconds: NUMBER }),
  ),
  controllers: object(DEPLOYMENT),
  extension: object(DEPLOYMENT),
  synchronization: object<Settings['synchronization']>({ ...DEPLOYMENT, serviceType: TEXT, servicePort: NUMBER }),
  agent: object<Settings['agent']>({
    nodeSelector: mapOf(TEXT),
    resources: RESOURCES,
    arguments: listOf(TEXT),
    hostPID: FLAG,
    updateStrategy: object<Settings['agent']['updateStrategy']>({ type: TEXT, rollingUpdate: ANY_OBJECT }),
  }),
  configuration: ANY_OBJECT,
};

/** The schema of all values. Helm gives `global` to charts that are part of others, which switch them on by `enabled`. */
export const VALUES_SCHEMA = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  ...object({ ...VALUES, global: ANY_OBJECT, enabled: FLAG }),
};

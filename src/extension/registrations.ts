import { PART_OF_GODWIT, SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';
import type { KubeObject } from '../api/meta.ts';
import { SERVICE_NAME } from './identity.ts';
import { SUBRESOURCE_GROUP, SUBRESOURCE_VERSIONS } from './subresources/group.ts';
import { type Registration, WEBHOOKS } from './webhooks/endpoints.ts';

/** What API servers are told of the extension: which webhooks to ask, and which group to pass on; pure. */

/** How API servers reach the extension. */
export type Reach =
  /** At an address, as on a machine of its own. The aggregation layer wants a Service even so: one without pods. */
  | { readonly kind: 'address'; readonly host: string; readonly port: number }
  /** Through the Service that its pods are behind. */
  | { readonly kind: 'service'; readonly port: number };

export interface RegistrationOptions {
  readonly reach: Reach;
  /** PEM of the authorities that its certificates are of; absent where the extension is to write them in itself. */
  readonly authoritiesPem?: string;
}

const LABELS = { ...PART_OF_GODWIT, 'kubevirt.io': 'virt-api' };
const TIMEOUT_SECONDS = 10;

/** Names and addresses that the extension's certificate has to carry. */
export function hostsOf(reach: Reach): readonly string[] {
  const service = [`${SERVICE_NAME}.${SYSTEM_NAMESPACE}.svc`, `${SERVICE_NAME}.${SYSTEM_NAMESPACE}.svc.cluster.local`];
  return reach.kind === 'address' ? [...service, reach.host] : service;
}

/** All of them, ready to be applied. */
export function registrations(options: RegistrationOptions): KubeObject[] {
  return [
    ...(options.reach.kind === 'address' ? [service(options.reach)] : []),
    configuration(options, 'mutating', 'MutatingWebhookConfiguration', 'virt-api-mutator'),
    configuration(options, 'validating', 'ValidatingWebhookConfiguration', 'virt-api-validator'),
    ...SUBRESOURCE_VERSIONS.map((version) => apiService(options, version)),
  ];
}

/** Stands for the address: the aggregation layer asks for `virt-api.kubevirt.svc`, and is sent there. */
function service({ host, port }: Extract<Reach, { kind: 'address' }>): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: SERVICE_NAME, namespace: SYSTEM_NAMESPACE, labels: LABELS },
    spec: { type: 'ExternalName', externalName: host, ports: [{ name: 'https', port }] },
  };
}

function configuration(
  options: RegistrationOptions,
  type: Registration['type'],
  kind: string,
  name: string,
): KubeObject {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind,
    metadata: { name, labels: LABELS },
    webhooks: WEBHOOKS.filter((each) => each.type === type).map((each) => webhook(options, each)),
  };
}

function webhook({ reach, authoritiesPem }: RegistrationOptions, registration: Registration): object {
  const {
    name,
    path,
    operations,
    apiGroup,
    apiVersion,
    resources,
    failurePolicy,
    matchConditions,
    sideEffects = 'None',
  } = registration;
  const place =
    reach.kind === 'address'
      ? { url: `https://${reach.host.includes(':') ? `[${reach.host}]` : reach.host}:${reach.port}${path}` }
      : { service: { namespace: SYSTEM_NAMESPACE, name: SERVICE_NAME, port: reach.port, path } };
  return {
    name,
    clientConfig: { ...place, ...bundleOf(authoritiesPem) },
    rules: [{ operations, apiGroups: [apiGroup], apiVersions: [apiVersion], resources, scope: '*' }],
    ...(matchConditions ? { matchConditions } : {}),
    failurePolicy,
    matchPolicy: 'Equivalent',
    sideEffects,
    timeoutSeconds: TIMEOUT_SECONDS,
    admissionReviewVersions: ['v1'],
  };
}

function apiService({ reach, authoritiesPem }: RegistrationOptions, version: string): KubeObject {
  return {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: `${version}.${SUBRESOURCE_GROUP}`, labels: LABELS },
    spec: {
      group: SUBRESOURCE_GROUP,
      version,
      service: { namespace: SYSTEM_NAMESPACE, name: SERVICE_NAME, port: reach.port },
      ...bundleOf(authoritiesPem),
      groupPriorityMinimum: 1000,
      versionPriority: version === 'v1' ? 15 : 10,
    },
  };
}

function bundleOf(pem: string | undefined): { caBundle?: string } {
  return pem === undefined ? {} : { caBundle: Buffer.from(pem).toString('base64') };
}

import type { JsonObject } from '../../../meta.ts';
import type { Column } from '../../../resource.ts';
import { ageColumn, column, nameColumn, NONE, wideColumn } from '../../columns.ts';
import { objectSchema } from '../../meta.ts';
import { numberAt, objectAt, objectsAt, textAt, textsAt } from '../fields.ts';
import { coreKind } from '../kind.ts';
import { labelsText } from '../labels-text.ts';
import { CORE } from '../schema/package.ts';
import { serviceSpec, serviceStatus } from '../schema/service.ts';
import { applyServiceDefaults, carryOver } from './defaults.ts';
import { serviceErrors, serviceUpdateErrors } from './validation.ts';

function externalAddress(spec: JsonObject | undefined, status: JsonObject | undefined): string {
  const external = textsAt(spec, 'externalIPs');
  switch (textAt(spec, 'type')) {
    case 'ClusterIP':
    case 'NodePort':
      return external.join(',') || NONE;
    case 'LoadBalancer': {
      const given = objectsAt(objectAt(status, 'loadBalancer'), 'ingress').map(
        (ingress) => textAt(ingress, 'ip') || textAt(ingress, 'hostname'),
      );
      return [...given.filter((each) => each !== ''), ...external].join(',') || '<pending>';
    }
    case 'ExternalName':
      return textAt(spec, 'externalName');
    default:
      return '<unknown>';
  }
}

function portsText(spec: JsonObject | undefined): string {
  const ports = objectsAt(spec, 'ports').map((port) => {
    const nodePort = numberAt(port, 'nodePort') ?? 0;
    const number = numberAt(port, 'port') ?? 0;
    return `${number}${nodePort > 0 ? `:${nodePort}` : ''}/${textAt(port, 'protocol')}`;
  });
  return ports.join(',') || NONE;
}

const columns: readonly Column[] = [
  nameColumn,
  column('Type', 'string', 'How the service is reached.', (spec) => textAt(spec, 'type')),
  column('Cluster-IP', 'string', 'Address within the cluster.', (spec) => textsAt(spec, 'clusterIPs')[0] ?? NONE),
  column('External-IP', 'string', 'Addresses outside the cluster.', externalAddress),
  column('Port(s)', 'string', 'Ports of the service.', portsText),
  ageColumn,
  wideColumn('Selector', 'string', 'Labels of the pods that serve.', (spec) => labelsText(spec, 'selector')),
];

/** core/v1 Service. */
export const serviceDefinition = coreKind({
  plural: 'services',
  kind: 'Service',
  namespaced: true,
  createsOnUpdate: true,
  shortNames: ['svc'],
  categories: ['all'],
  hasStatus: true,
  // The rule for services is stricter than the registry's, and has its own words.
  nameRule: 'path-segment',
  schema: objectSchema(`${CORE}.Service`, 'A name and an address for a set of pods.', {
    spec: [2, serviceSpec, 'What the service is to be.'],
    status: [3, serviceStatus, 'The observed state.'],
  }),
  selectableFields: ['spec.clusterIP', 'spec.type'],
  columns,
  strategy: {
    applyDefaults: applyServiceDefaults,
    prepareForCreate(service) {
      service['status'] = { loadBalancer: {} };
    },
    prepareForUpdate: carryOver,
    validate: serviceErrors,
    validateUpdate: serviceUpdateErrors,
  },
});

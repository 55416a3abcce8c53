import { child, type FieldError, invalid, required } from '../../field-error.ts';
import type { JsonObject, KubeObject } from '../../meta.ts';
import { dnsLabelErrors, dnsSubdomainErrors, portNumberErrors } from '../../names.ts';
import type { Strategy } from '../../resource.ts';
import { list } from '../../schema.ts';
import { ageColumn, column, nameColumn, NONE } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { has, numberAt, objectsAt, setDefault, textAt } from './fields.ts';
import { ipErrors, ipFamily } from './ip.ts';
import { coreKind } from './kind.ts';
import { CORE } from './schema/package.ts';
import { endpointSubset } from './schema/service.ts';

const SHOWN_MAX = 3;

const strategy: Strategy = {
  applyDefaults(endpoints) {
    for (const subset of objectsAt(endpoints, 'subsets')) {
      for (const port of objectsAt(subset, 'ports')) setDefault(port, 'protocol', 'TCP');
    }
  },
  validate: (endpoints) =>
    objectsAt(endpoints, 'subsets').flatMap((subset, index) => subsetErrors(subset, child('subsets', index))),
};

function subsetErrors(subset: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const ready = objectsAt(subset, 'addresses');
  const notReady = objectsAt(subset, 'notReadyAddresses');
  if (ready.length + notReady.length === 0) {
    errors.push(required(path, 'must specify `addresses` or `notReadyAddresses`'));
  }
  for (const field of ['addresses', 'notReadyAddresses']) {
    for (const [index, address] of objectsAt(subset, field).entries()) {
      errors.push(...addressErrors(address, child(child(path, field), index)));
    }
  }
  const ports = objectsAt(subset, 'ports');
  for (const [index, port] of ports.entries()) {
    errors.push(...portErrors(port, child(child(path, 'ports'), index), ports.length > 1));
  }
  return errors;
}

function addressErrors(address: JsonObject, path: string): FieldError[] {
  const ip = textAt(address, 'ip');
  const errors = has(address, 'ip') ? ipErrors(ip, child(path, 'ip')) : [];
  if (errors.length === 0) errors.push(...specialIpErrors(ip, child(path, 'ip')));
  const hostname = textAt(address, 'hostname');
  if (hostname !== '') {
    for (const message of dnsLabelErrors(hostname)) errors.push(invalid(child(path, 'hostname'), hostname, message));
  }
  if (has(address, 'nodeName')) {
    const node = textAt(address, 'nodeName');
    for (const message of dnsSubdomainErrors(node)) errors.push(invalid(child(path, 'nodeName'), node, message));
  }
  return errors;
}

/** Endpoints must not lead back into the node. */
function specialIpErrors(ip: string, path: string): FieldError[] {
  const address = ip.toLowerCase();
  if (address === '0.0.0.0' || address === '::') return [invalid(path, ip, `may not be unspecified (${ip})`)];
  if (address.startsWith('127.') || address === '::1') {
    return [invalid(path, ip, 'may not be in the loopback range (127.0.0.0/8, ::1/128)')];
  }
  if (address.startsWith('169.254.') || /^fe[89ab][0-9a-f]:/.test(address)) {
    return [invalid(path, ip, 'may not be in the link-local range (169.254.0.0/16, fe80::/10)')];
  }
  if (address.startsWith('224.0.0.') || address.startsWith('ff02:')) {
    return [invalid(path, ip, 'may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)')];
  }
  return [];
}

function portErrors(port: JsonObject, path: string, needsName: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const name = textAt(port, 'name');
  if (name === '') {
    if (needsName) errors.push(required(child(path, 'name')));
  } else {
    for (const message of dnsLabelErrors(name)) errors.push(invalid(child(path, 'name'), name, message));
  }
  const number = numberAt(port, 'port');
  if (number !== undefined) {
    for (const message of portNumberErrors(number)) errors.push(invalid(child(path, 'port'), number, message));
  }
  return errors;
}

function endpointsText(endpoints: KubeObject): string {
  const subsets = objectsAt(endpoints, 'subsets');
  if (subsets.length === 0) return NONE;
  const all = subsets.flatMap((subset) => {
    const addresses = objectsAt(subset, 'addresses').map((address) => textAt(address, 'ip'));
    const ports = objectsAt(subset, 'ports').map((port) => numberAt(port, 'port') ?? 0);
    if (ports.length === 0) return addresses;
    return ports.flatMap((port) => addresses.map((ip) => (ipFamily(ip) === 6 ? `[${ip}]:${port}` : `${ip}:${port}`)));
  });
  const shown = all.slice(0, SHOWN_MAX).join(',');
  return all.length > SHOWN_MAX ? `${shown} + ${all.length - SHOWN_MAX} more...` : shown;
}

/** core/v1 Endpoints. */
export const endpointsDefinition = coreKind({
  plural: 'endpoints',
  kind: 'Endpoints',
  namespaced: true,
  createsOnUpdate: true,
  shortNames: ['ep'],
  deprecation: 'v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice',
  schema: objectSchema(`${CORE}.Endpoints`, 'The addresses behind a service.', {
    subsets: [2, list(endpointSubset), 'Addresses, grouped by ports.'],
  }),
  columns: [
    nameColumn,
    column('Endpoints', 'string', 'Addresses and ports, the first few.', (_spec, _status, object) =>
      endpointsText(object),
    ),
    ageColumn,
  ],
  strategy,
});

import { describe, expect, it } from 'vitest';
import type { CertificateRequest } from '../../machinery/x509/certificate-request.ts';
import { type KnownNodes, servingObjection, type ServingRequest } from './decide.ts';

const addresses = new Map([
  ['n1', ['box.example.com', '10.0.0.1', 'fd00::1']],
  ['n2', ['n2', '10.0.0.1']],
  [
    'thief',
    [
      'n1',
      'kubernetes',
      'kubernetes.default.svc',
      'localhost',
      'virt-api.kubevirt.svc',
      '10.0.0.9',
      '10.96.0.1',
      '127.0.0.1',
      '::1',
      'fd00::9',
    ],
  ],
  ['kubernetes', []],
]);
const nodes: KnownNodes = {
  addressesOf: (name) => addresses.get(name),
  isNode: (name) => addresses.has(name),
  apiServerAddresses: ['10.96.0.1', 'fd00:0::9'],
};

function asking(node: string, names: Partial<CertificateRequest>, more: Partial<ServingRequest> = {}): ServingRequest {
  return {
    username: `system:node:${node}`,
    groups: ['system:nodes', 'system:authenticated'],
    usages: ['digital signature', 'server auth'],
    request: {
      commonName: `system:node:${node}`,
      organizations: ['system:nodes'],
      dnsNames: [],
      ipAddresses: [],
      emailAddresses: [],
      uris: [],
      publicKey: new Uint8Array(),
      ...names,
    },
    ...more,
  };
}

describe('a serving certificate', () => {
  it.each<[string, Partial<CertificateRequest>]>([
    ['its name', { dnsNames: ['n1'] }],
    ['all its addresses', { dnsNames: ['n1', 'box.example.com'], ipAddresses: ['10.0.0.1', 'fd00::1'] }],
    ['the same, otherwise written', { dnsNames: ['BOX.example.com'], ipAddresses: ['fd00:0:0::0001'] }],
  ])('is approved for %s', (_, names) => expect(servingObjection(asking('n1', names), nodes)).toBeUndefined());

  it.each<[string, ServingRequest, RegExp]>([
    ['an address that it does not have', asking('n1', { ipAddresses: ['10.0.0.2'] }), /10\.0\.0\.2/],
    ['a name that it does not have', asking('n1', { dnsNames: ['n1', 'other'] }), /address other$/],
    ['no name at all', asking('n1', {}), /subjectAltName is required/],
    ['another node', asking('n1', { commonName: 'system:node:n2', dnsNames: ['n2'] }), /somebody else/],
    ['the use of clients', asking('n1', { dnsNames: ['n1'] }, { usages: ['client auth'] }), /usages/],
    ['another group', asking('n1', { dnsNames: ['n1'], organizations: ['system:masters'] }), /organization/],
    ['a URI as well', asking('n1', { dnsNames: ['n1'], uris: ['spiffe://x'] }), /URI/],
    ['a node that is not there', asking('n9', { dnsNames: ['n9'] }), /no node "n9" with an agent/],
    ['who is no node', asking('n1', { dnsNames: ['n1'] }, { groups: [] }), /not made by a node/],
    ['a user', asking('n1', { dnsNames: ['n1'] }, { username: 'ann' }), /not made by a node/],
    ["another node's name, though it says so", asking('thief', { dnsNames: ['n1'] }), /somebody else is known by n1/],
    ["the API server's name", asking('thief', { dnsNames: ['kubernetes'] }), /somebody else is known/],
    ["the API server's service", asking('thief', { dnsNames: ['kubernetes.default.svc'] }), /somebody else/],
    ['loopback', asking('thief', { dnsNames: ['localhost'] }), /somebody else/],
    ['a service', asking('thief', { dnsNames: ['virt-api.kubevirt.svc'] }), /somebody else/],
    ["the API server's address", asking('thief', { ipAddresses: ['10.96.0.1'] }), /API server is known by 10\.96/],
    ['the same, otherwise written', asking('thief', { ipAddresses: ['fd00::9'] }), /API server is known by fd00/],
    ['the address of every host', asking('thief', { ipAddresses: ['127.0.0.1'] }), /API server is known/],
    ['the same of six', asking('thief', { ipAddresses: ['::1'] }), /API server is known/],
    ['a node that is called as the API server is', asking('kubernetes', { dnsNames: ['kubernetes'] }), /else/],
  ])('waits for a person when it is for %s', (_, asked, objection) =>
    expect(servingObjection(asked, nodes)).toMatch(objection),
  );
});

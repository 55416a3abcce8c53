import { X509Certificate } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { certificateSigningRequestDefinition } from '../../api/kinds/certificates/certificate-signing-request.ts';
import type { KubeObject } from '../../api/meta.ts';
import { testEnv } from '../../env/test.ts';
import { clone } from '../../machinery/clone.ts';
import { RbacAuthorizer } from '../auth/rbac.ts';
import { clusterBinding, clusterRole } from '../auth/roles.fixture.ts';
import { TestRegistry, userContext } from '../registry/registry.fixture.ts';
import type { UserInfo } from '../http/message.ts';
import { type Authority, createAuthority } from '../../machinery/x509/authority.ts';
import { makeCertificateRequest, type RequestNames } from '../../machinery/x509/certificate-request.fixture.ts';
import { CertificateSigner } from './certificate-signer.ts';
import { CertificateSigningAdmission } from './certificate-signing.ts';

const GROUP = 'certificates.k8s.io';
const CLIENT = 'kubernetes.io/kube-apiserver-client';
const NODE_CLIENT = 'kubernetes.io/kube-apiserver-client-kubelet';
const NODE_SERVING = 'kubernetes.io/kubelet-serving';
const CLIENT_USAGES = ['digital signature', 'client auth'];
const SERVING_USAGES = ['digital signature', 'key encipherment', 'server auth'];
const node: RequestNames = { commonName: 'system:node:a', organizations: ['system:nodes'] };

async function requestOf(
  names: RequestNames,
  signerName: string,
  usages: readonly string[],
  more: object = {},
): Promise<KubeObject> {
  const { requestPem } = await makeCertificateRequest(names);
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'CertificateSigningRequest',
    metadata: { name: 'r', uid: 'r-uid' },
    spec: { request: Buffer.from(requestPem).toString('base64'), signerName, usages, ...more },
    status: {},
  };
}

const approved = { type: 'Approved', status: 'True', reason: 'Test', message: 'yes' };

describe('admission', () => {
  const ann: UserInfo = { username: 'ann', uid: 'u', groups: ['staff'], extra: { a: ['b'] } };
  const env = testEnv();
  let plugin: CertificateSigningAdmission;
  const signers = (verb: string, ...resourceNames: string[]) => [
    { verbs: [verb], apiGroups: [GROUP], resources: ['signers'], resourceNames },
  ];
  beforeAll(async () => {
    const registry = await TestRegistry.open(
      clusterRole('approve-nodes', signers('approve', NODE_CLIENT)),
      clusterRole('approve-all', signers('approve', 'kubernetes.io/*')),
      clusterRole('sign', signers('sign', CLIENT)),
      clusterBinding('a', 'approve-nodes', 'User:ann'),
      clusterBinding('b', 'approve-all', 'User:boss'),
      clusterBinding('s', 'sign', 'User:signer'),
    );
    plugin = new CertificateSigningAdmission({ clock: env.clock, authorizer: new RbacAuthorizer(registry) });
  });

  const admit = async (object: KubeObject, old?: KubeObject, subresource?: string, user = ann): Promise<KubeObject> => {
    const admitted = clone(object);
    const attributes = {
      operation: old ? ('UPDATE' as const) : ('CREATE' as const),
      target: { definition: certificateSigningRequestDefinition, namespace: '', name: 'r', subresource },
      object: admitted,
      oldObject: old,
      options: undefined,
      context: userContext({ user }),
    };
    expect(plugin.handles(attributes)).toBe(true);
    await plugin.mutate(attributes);
    await plugin.validate(attributes);
    return admitted;
  };

  it('writes down who asks, whatever the client says', async () => {
    const claimed = { username: 'root', uid: 'x', groups: ['system:masters'], extra: { c: ['d'] } };
    const admitted = await admit(await requestOf(node, NODE_CLIENT, CLIENT_USAGES, claimed));
    expect(admitted['spec']).toMatchObject({ username: 'ann', uid: 'u', groups: ['staff'], extra: { a: ['b'] } });
    const plain = await admit(await requestOf(node, NODE_CLIENT, CLIENT_USAGES, claimed), undefined, undefined, {
      username: 'bob',
      groups: [],
    });
    expect(Object.keys(plain['spec'] as object).sort()).toEqual([
      'groups',
      'request',
      'signerName',
      'usages',
      'username',
    ]);
  });

  it('refuses what is no signed request', async () => {
    const request = await requestOf(node, NODE_CLIENT, CLIENT_USAGES);
    const text = Buffer.from('-----BEGIN CERTIFICATE-----').toString('base64');
    await expect(admit({ ...request, spec: { ...(request['spec'] as object), request: text } })).rejects.toMatchObject({
      code: 422,
      message:
        'CertificateSigningRequest.certificates.k8s.io "r" is invalid: spec.request: Invalid value: "<certificate request>": PEM block type must be CERTIFICATE REQUEST',
    });
  });

  it('refuses system:masters', async () => {
    const names = { commonName: 'x', organizations: ['a', 'system:masters'] };
    await expect(admit(await requestOf(names, CLIENT, CLIENT_USAGES))).rejects.toMatchObject({
      code: 403,
      message: expect.stringContaining(
        'use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
      ) as string,
    });
  });

  it('lets only approvers of the signer approve, and only that', async () => {
    const old = await requestOf(node, NODE_CLIENT, CLIENT_USAGES, { username: 'x', groups: [] });
    const change = clone(old);
    change['spec'] = { signerName: 'mine', username: 'root' };
    change['status'] = { certificate: 'bWluZQ==', conditions: [approved] };
    const admitted = await admit(change, old, 'approval');
    expect(admitted['spec']).toEqual(old['spec']);
    expect(admitted['status']).toEqual({
      conditions: [{ ...approved, lastUpdateTime: '2026-01-01T00:00:00Z', lastTransitionTime: '2026-01-01T00:00:00Z' }],
    });
    await expect(admit(change, old, 'approval', { username: 'bob', groups: [] })).rejects.toMatchObject({
      code: 403,
      message: `certificatesigningrequests.certificates.k8s.io "r" is forbidden: user not permitted to approve requests with signerName "${NODE_CLIENT}"`,
    });
    const serving = await requestOf(node, NODE_SERVING, SERVING_USAGES);
    await expect(admit({ ...serving, status: { conditions: [approved] } }, serving, 'approval')).rejects.toMatchObject({
      code: 403,
    });
    await admit({ ...serving, status: { conditions: [approved] } }, serving, 'approval', {
      username: 'boss',
      groups: [],
    });
  });

  it('does not let an approval be taken back', async () => {
    const old = { ...(await requestOf(node, NODE_CLIENT, CLIENT_USAGES)), status: { conditions: [approved] } };
    await expect(admit({ ...old, status: {} }, old, 'approval')).rejects.toMatchObject({ code: 422 });
  });

  it('keeps the spec on an update, and the time of a condition that was there', async () => {
    const old: KubeObject = {
      ...(await requestOf(node, NODE_CLIENT, CLIENT_USAGES, { username: 'x', groups: [] })),
      status: { conditions: [{ ...approved, lastTransitionTime: '2025-01-01T00:00:00Z' }] },
    };
    expect((await admit({ ...old, spec: { username: 'root' } }, old))['spec']).toEqual(old['spec']);
    const admitted = await admit({ ...old, status: { conditions: [approved] } }, old, 'approval');
    expect(admitted['status']).toMatchObject({ conditions: [{ lastTransitionTime: '2025-01-01T00:00:00Z' }] });
  });

  it('lets only signers of the signer write the status', async () => {
    const old = await requestOf({ commonName: 'x' }, CLIENT, CLIENT_USAGES);
    const signed = { ...old, status: { certificate: 'eA==' } };
    await expect(admit(signed, old, 'status')).rejects.toMatchObject({ code: 403 });
    await admit(signed, old, 'status', { username: 'signer', groups: [] });
    await admit(old, old, 'status');
  });
});

describe('the signer', () => {
  let authority: Authority;
  let later: KubeObject;
  beforeAll(async () => {
    authority = await createAuthority(testEnv(), 'test-ca');
    later = await decided(requestOf({ commonName: 'later' }, CLIENT, CLIENT_USAGES));
  });

  const bootstrapper = { username: 'system:bootstrap:abcdef', groups: ['system:bootstrappers'] };
  const self = { username: 'system:node:a', groups: ['system:nodes'] };

  /** Puts the request before a signer that is running, and waits until it has nothing more to do about it. */
  async function outcome(request: KubeObject, when: 'before' | 'after' = 'after'): Promise<Record<string, unknown>> {
    const env = testEnv();
    const registry = await TestRegistry.open();
    for (const subresource of ['nodeclient', 'selfnodeclient']) {
      const resources = [`certificatesigningrequests/${subresource}`];
      await registry.put(clusterRole(subresource, [{ verbs: ['create'], apiGroups: [GROUP], resources }]));
    }
    await registry.put(clusterBinding('join', 'nodeclient', 'Group:system:bootstrappers'));
    await registry.put(clusterBinding('renew', 'selfnodeclient', 'Group:system:nodes'));
    const signer = new CertificateSigner({
      env,
      registry,
      authorizer: new RbacAuthorizer(registry),
      authority: { ...authority, env },
    });
    const abort = new AbortController();
    if (when === 'before') await registry.put(request);
    const running = signer.run(abort.signal);
    if (when === 'after') await registry.put(request);
    const view = registry.view(`certificatesigningrequests.${GROUP}`);
    // The signer takes one request after the other, so whatever was pending before a later one is signed is done with.
    // Twice: approving a request makes it pending again.
    for (const name of ['later', 'latest']) {
      const isSigned = new Promise<void>((resolve) => {
        view.onChange((object) => {
          const { certificate } = (object?.['status'] ?? {}) as { certificate?: string };
          if (object?.metadata.name === name && certificate !== undefined) resolve();
        });
      });
      await registry.put({ ...clone(later), metadata: { name, uid: name } });
      await isSigned;
    }
    abort.abort();
    await running;
    return (view.get('', 'r')?.['status'] ?? {}) as Record<string, unknown>;
  }

  const certificateOf = (status: Record<string, unknown>): X509Certificate =>
    new X509Certificate(Buffer.from(String(status['certificate']), 'base64'));

  it.each(['before', 'after'] as const)('lets a node join (%s it runs)', async (when) => {
    const status = await outcome(await requestOf(node, NODE_CLIENT, CLIENT_USAGES, bootstrapper), when);
    expect(status['conditions']).toEqual([
      {
        type: 'Approved',
        status: 'True',
        reason: 'AutoApproved',
        message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
        lastUpdateTime: '2026-01-01T00:00:00Z',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ]);
    const certificate = certificateOf(status);
    expect(certificate.subject).toBe('O=system:nodes\nCN=system:node:a');
    expect(certificate.checkIssued(new X509Certificate(authority.certificatePem))).toBe(true);
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
    expect(Date.parse(certificate.validTo)).toBe(Date.UTC(2027, 0, 1));
  });

  it('lets a node renew its own certificate, not another’s', async () => {
    const status = await outcome(
      await requestOf(node, NODE_CLIENT, CLIENT_USAGES, { ...self, expirationSeconds: 3600 }),
    );
    expect(status['conditions']).toMatchObject([
      { message: 'Auto approving self kubelet client certificate after SubjectAccessReview.' },
    ]);
    expect(Date.parse(certificateOf(status).validTo)).toBe(Date.UTC(2026, 0, 1, 1));
    const other = { commonName: 'system:node:b', organizations: ['system:nodes'] };
    expect(await outcome(await requestOf(other, NODE_CLIENT, CLIENT_USAGES, self))).toEqual({});
  });

  const waits: [name: string, names: RequestNames, signer: string, usages: string[], requester: object][] = [
    ['someone without leave', node, NODE_CLIENT, CLIENT_USAGES, { username: 'bob', groups: [] }],
    ['a serving certificate', { ...node, dnsNames: ['a'] }, NODE_SERVING, SERVING_USAGES, bootstrapper],
    ['another client', { commonName: 'x' }, CLIENT, CLIENT_USAGES, bootstrapper],
    ['a node that asks the signer of other clients', node, CLIENT, CLIENT_USAGES, bootstrapper],
    ['a node that wants more names', { ...node, dnsNames: ['a'] }, NODE_CLIENT, CLIENT_USAGES, bootstrapper],
    [
      'a node that wants more groups',
      { ...node, organizations: ['system:nodes', 'system:masters'] },
      NODE_CLIENT,
      CLIENT_USAGES,
      bootstrapper,
    ],
    ['a node that is none', { ...node, commonName: 'admin' }, NODE_CLIENT, CLIENT_USAGES, bootstrapper],
    ['a node that wants to serve', node, NODE_CLIENT, SERVING_USAGES, bootstrapper],
    ['a signer that is not ours', node, 'example.com/x', CLIENT_USAGES, bootstrapper],
  ];
  it.each(waits)('leaves to people: %s', async (_name, names, signer, usages, requester) => {
    expect(await outcome(await requestOf(names, signer, usages, requester))).toEqual({});
  });

  const decided = async (request: Promise<KubeObject>, type = 'Approved'): Promise<KubeObject> => ({
    ...(await request),
    status: { conditions: [{ ...approved, type }] },
  });

  it('signs what people approve', async () => {
    const serving = { ...node, dnsNames: ['a.example'], ipAddresses: ['192.0.2.1'] };
    const status = await outcome(await decided(requestOf(serving, NODE_SERVING, SERVING_USAGES)));
    const certificate = certificateOf(status);
    expect(certificate.subjectAltName).toBe('DNS:a.example, IP Address:192.0.2.1');
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1']);
    const client = await outcome(
      await decided(requestOf({ commonName: 'bob', organizations: ['x'] }, CLIENT, CLIENT_USAGES)),
    );
    expect(certificateOf(client).subject).toBe('O=x\nCN=bob');
  });

  const fails: [message: string, names: RequestNames, signer: string, usages: string[]][] = [
    ['DNS or IP subjectAltName is required', node, NODE_SERVING, SERVING_USAGES],
    ['subject organization is not system:nodes', { commonName: 'system:node:a' }, NODE_CLIENT, CLIENT_USAGES],
    [
      'subject common name does not begin with system:node:',
      { ...node, commonName: 'system:node:' },
      NODE_CLIENT,
      CLIENT_USAGES,
    ],
    ['IP subjectAltNames are not allowed', { ...node, ipAddresses: ['192.0.2.1'] }, NODE_CLIENT, CLIENT_USAGES],
    ['URI subjectAltNames are not allowed', { ...node, uris: ['x://y'] }, NODE_CLIENT, CLIENT_USAGES],
    ['Email subjectAltNames are not allowed', { ...node, emailAddresses: ['a@b.c'] }, NODE_CLIENT, CLIENT_USAGES],
    ['usages did not match [client auth digital signature key encipherment]', node, NODE_CLIENT, ['client auth']],
    [
      'invalid usage for client certificate: server auth',
      { commonName: 'x' },
      CLIENT,
      [...CLIENT_USAGES, 'server auth'],
    ],
    ['missing required usage for client certificate: client auth', { commonName: 'x' }, CLIENT, ['digital signature']],
  ];
  it.each(fails)('marks an approved request as failed: %s', async (message, names, signer, usages) => {
    const status = await outcome(await decided(requestOf(names, signer, usages)));
    expect(status['certificate']).toBeUndefined();
    expect(status['conditions']).toMatchObject([
      { type: 'Approved' },
      { type: 'Failed', status: 'True', reason: 'SignerValidationFailure', message },
    ]);
  });

  it.each(['Denied', 'Failed'])('does nothing about a request that is %s', async (type) => {
    const request = await decided(requestOf(node, NODE_CLIENT, CLIENT_USAGES, bootstrapper), type);
    expect(await outcome(request)).toEqual(request['status']);
  });

  it('tries again when a write fails', async () => {
    const env = testEnv();
    const registry = await TestRegistry.open();
    const view = registry.view(`certificatesigningrequests.${GROUP}`);
    let failures = 0;
    const failing = {
      view: registry.view.bind(registry),
      definition: registry.definition.bind(registry),
      update: (...parameters: Parameters<TestRegistry['update']>): Promise<KubeObject> =>
        failures++ === 0 ? Promise.reject(new Error('disk full')) : registry.update(...parameters),
    };
    let failed = (): void => undefined;
    const hasFailed = new Promise<void>((resolve) => {
      failed = resolve;
    });
    const signer = new CertificateSigner({
      env: { ...env, log: { ...env.log, warn: () => failed() } },
      registry: failing,
      authorizer: new RbacAuthorizer(registry),
      authority: { ...authority, env },
    });
    const abort = new AbortController();
    const running = signer.run(abort.signal);
    await registry.put({ ...clone(later), metadata: { name: 'r', uid: 'u' } });
    await hasFailed;
    await Promise.resolve();
    const isSigned = new Promise<void>((resolve) => view.onChange(() => resolve()));
    env.clock.advance(1_000);
    await isSigned;
    expect(view.get('', 'r')?.['status']).toHaveProperty('certificate');
    abort.abort();
    await running;
  });
});

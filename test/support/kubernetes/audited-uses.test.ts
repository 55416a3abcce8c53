import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { collectedUses, collectUses, refusalIn, refusals, usesIn } from './audited-uses.ts';

const CONTROLLER = 'system:serviceaccount:kubevirt:godwit-controller';
const EVENT = {
  verb: 'patch',
  user: { username: CONTROLLER, groups: ['system:serviceaccounts'] },
  userAgent: 'virt-controller/godwit',
  objectRef: { resource: 'pods', namespace: 'shop', name: 'p', apiVersion: 'v1' },
  responseStatus: { code: 200 },
};
const USE = { holder: CONTROLLER, verb: 'patch', group: '', resource: 'pods', name: 'p', namespace: 'shop' };

function seen(change: object): ReturnType<typeof usesIn> {
  return usesIn(JSON.stringify({ ...EVENT, ...change }));
}

describe('a line of an audit log', () => {
  it('shows what a component used', () => expect(seen({})).toEqual([USE]));
  it('shows subresources and groups', () => {
    const objectRef = { apiGroup: 'kubevirt.io', resource: 'kubevirts', subresource: 'status' };
    const use = { ...USE, group: 'kubevirt.io', resource: 'kubevirts/status', name: '', namespace: '' };
    expect(seen({ objectRef })).toEqual([use]);
  });
  it('shows nodes as their group', () => {
    const user = { username: 'system:node:n1', groups: ['system:nodes', 'system:authenticated'] };
    expect(seen({ user })).toEqual([{ ...USE, holder: 'system:nodes' }]);
  });
  it('shows who applied what was not there as somebody who created it', () =>
    expect(seen({ responseStatus: { code: 201 } })).toEqual([USE, { ...USE, verb: 'create' }]));

  it.each<[who: string, change: object]>([
    ['who was refused', { responseStatus: { code: 403 } }],
    ['who got no answer', { responseStatus: undefined }],
    ['who was not recognised', { user: {}, responseStatus: { code: 401 } }],
    ['who is none of ours', { user: { username: 'kubernetes-admin' } }],
    ['an account of another namespace', { user: { username: 'system:serviceaccount:shop:godwit-controller' } }],
    ['a kubelet', { userAgent: 'kubelet/v1.34.0 (linux/amd64) kubernetes/godwit.0' }],
    ['a path that is no object', { objectRef: undefined }],
  ])('shows nothing of %s', (_, change) => expect(seen(change)).toEqual([]));
  it('shows nothing where it was cut short', () =>
    expect(usesIn('{"verb":"get","userAgent":"virt-api/godwit"')).toEqual([]));
});

describe('a refusal', () => {
  const refused = { requestURI: '/api/v1/secrets', annotations: { 'authorization.k8s.io/decision': 'forbid' } };
  const shown = (change: object): string | undefined => refusalIn(JSON.stringify({ ...EVENT, ...refused, ...change }));
  it('is shown, with who was refused and what', () => expect(shown({})).toBe(`${CONTROLLER} patch /api/v1/secrets`));
  it.each<[what: string, change: object]>([
    ['what was allowed', { annotations: { 'authorization.k8s.io/decision': 'allow' } }],
    ['who is none of ours', { user: { username: 'kubernetes-admin' } }],
    ['who asked on behalf of others', { user: { username: 'kubernetes-admin' }, impersonatedUser: EVENT.user }],
  ])('is not that of %s', (_, change) => expect(shown(change)).toBeUndefined());
  it('is found in the log', async () => {
    const logs = mkdtempSync(join(tmpdir(), 'godwit-test-'));
    writeFileSync(join(logs, 'audit.log'), `${JSON.stringify(EVENT)}\n${JSON.stringify({ ...EVENT, ...refused })}\n`);
    expect(await refusals(logs, 'audit.log')).toEqual([`${CONTROLLER} patch /api/v1/secrets`]);
  });
});

it('is collected from all files of a log, each use once', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'godwit-test-'));
  const [logs, into] = [join(directory, 'logs'), join(directory, 'uses')];
  mkdirSync(logs);
  const created = JSON.stringify({ ...EVENT, verb: 'create' });
  writeFileSync(join(logs, 'audit.log'), `${created}\n${JSON.stringify(EVENT)}\n`);
  writeFileSync(join(logs, 'audit-2025-11-01T00-00-00.000.log'), `${JSON.stringify({ ...EVENT, verb: 'delete' })}\n`);
  writeFileSync(join(logs, 'audit-policy.yaml'), created);
  await collectUses(logs, 'audit.log', into);
  await collectUses(logs, 'audit.log', into);
  const verbs = collectedUses(into).map(({ verb }) => verb);
  expect(verbs.toSorted()).toEqual(['create', 'delete', 'patch']);
});

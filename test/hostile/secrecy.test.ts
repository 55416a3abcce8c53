import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Fortress, ROOT, SECRET } from './fortress.ts';

/** What never gets out, whoever looks at the disk, the log or the audit log. */

const AUDIT_DIRECTORY = mkdtempSync(join(tmpdir(), 'godwit-audit-'));
const AUDIT_LOG = join(AUDIT_DIRECTORY, 'audit.log');

let fortress: Fortress;
beforeAll(async () => {
  // What is made while nobody watches must be private all the same.
  const umask = process.umask(0);
  fortress = await Fortress.start('--log-level', 'debug', '--audit-log', AUDIT_LOG);
  process.umask(umask);
});
afterAll(async () => {
  await fortress.close();
  rmSync(AUDIT_DIRECTORY, { recursive: true });
});

describe('what lies on the disk', () => {
  it('is private to whoever started the server, whatever the umask', () => {
    const open: string[] = [];
    const visit = (path: string): void => {
      const { mode } = statSync(path);
      if ((mode & 0o077) !== 0 && path !== fortress.cluster.godwit.directory)
        open.push(`${path} ${(mode & 0o777).toString(8)}`);
      if (statSync(path).isDirectory()) for (const name of readdirSync(path)) visit(join(path, name));
    };
    visit(fortress.cluster.godwit.directory);
    visit(AUDIT_DIRECTORY);
    expect(open).toEqual([]);
    expect(readdirSync(fortress.cluster.godwit.directory)).toEqual(
      expect.arrayContaining(['data', 'kubeconfig', 'pki']),
    );
  });
});

describe('what is written down', () => {
  it('holds no secret and no token, however they were sent', async () => {
    const { status } = await fortress.cluster.create(`${ROOT}/serviceaccounts/robot/token`, { spec: {} });
    const bearer = fortress.client({ token: status.token });
    const merge = { 'content-type': 'application/merge-patch+json' };
    const json = { 'content-type': 'application/json-patch+json' };
    const data = { password: SECRET };
    const encoded = Buffer.from(SECRET).toString('base64');
    await fortress.cluster.create(`${ROOT}/secrets`, { metadata: { name: 'written' }, stringData: data });
    await fortress.cluster.merge(`${ROOT}/secrets/written`, { stringData: { more: SECRET } });
    const bad: [string, string, unknown, Record<string, string>?][] = [
      ['POST', `${ROOT}/secrets`, `{"metadata":{"name":"x"},"stringData":{"password": ${SECRET}}}`],
      ['POST', `${ROOT}/secrets`, `{"metadata":{"name":"x"},"stringData":{"password":"${SECRET}"`],
      ['POST', `${ROOT}/secrets`, `metadata: [\npassword: ${SECRET}`, { 'content-type': 'application/yaml' }],
      ['POST', `${ROOT}/secrets`, { metadata: { name: 'x' }, data: { password: SECRET } }],
      ['POST', `${ROOT}/secrets`, { metadata: { name: 'x' }, data: { password: [SECRET] } }],
      ['POST', `${ROOT}/secrets`, { metadata: { name: 'x' }, data: SECRET }],
      ['POST', `${ROOT}/secrets?fieldValidation=Strict`, { metadata: { name: 'x' }, [SECRET]: 1 }],
      [
        'POST',
        `${ROOT}/secrets`,
        { metadata: { name: 'x' }, type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': encoded } },
      ],
      ['POST', `${ROOT}/secrets`, { metadata: { name: 'x' }, stringData: { [`/${SECRET}`]: SECRET } }],
      ['PUT', `${ROOT}/secrets/written`, { metadata: { name: 'written' }, type: SECRET, stringData: data }],
      ['PATCH', `${ROOT}/secrets/written`, { data: { password: [SECRET] } }, merge],
      ['PATCH', `${ROOT}/secrets/written`, { data: [SECRET] }, merge],
      ['PATCH', `${ROOT}/secrets/written`, [{ op: 'replace', path: '/data', value: SECRET }], json],
      ['PATCH', `${ROOT}/secrets/written`, [{ op: 'test', path: '/data/password', value: SECRET }], json],
      [
        'PATCH',
        `${ROOT}/secrets/written?fieldManager=me`,
        { apiVersion: 'v1', kind: 'Secret', stringData: [SECRET] },
        { 'content-type': 'application/apply-patch+yaml' },
      ],
      ['POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: [status.token] } }],
      ['POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: SECRET } }],
      ['GET', `${ROOT}/secrets?token=${SECRET}&access_token=${SECRET}&password=${SECRET}`, undefined],
    ];
    for (const [method, path, body, headers = {}] of bad) {
      const options = { ...(body === undefined ? {} : { body }), headers };
      await fortress.cluster.api.request(method, path, options);
      await bearer.request(method, path, options);
    }
    await fortress.client({ token: `${SECRET}.${SECRET}.${SECRET}` }).request('GET', '/api');
    await fortress.client().request('GET', '/api', {
      headers: { authorization: `Basic ${SECRET}`, cookie: SECRET, 'proxy-authorization': SECRET },
    });
    expect(await fortress.cluster.godwit.terminate()).toBe(0);
    const audit = readFileSync(AUDIT_LOG, 'utf8');
    expect(audit.split('\n').length).toBeGreaterThan(40);
    for (const [where, text] of Object.entries({ audit, log: fortress.cluster.godwit.output })) {
      const leaks = text
        .split('\n')
        .filter((line) =>
          [SECRET, encoded.slice(0, 20), status.token, 'PRIVATE KEY'].some((secret) => line.includes(secret)),
        );
      expect({ where, leaks }).toEqual({ where, leaks: [] });
    }
  });
});

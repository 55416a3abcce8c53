import { describe, expect, it } from 'vitest';
import { createErrors } from '../test-kinds.ts';
import { validatingWebhookConfigurationDefinition as configurations } from './webhook-configurations.ts';

const rule = { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] };
const service = { namespace: 'n', name: 's', path: '/check', port: 443 };
const webhook = {
  name: 'a.example.com',
  clientConfig: { service },
  rules: [rule],
  sideEffects: 'None',
  timeoutSeconds: 10,
  admissionReviewVersions: ['v1'],
};
const errorsWith = (change: object): string[] =>
  createErrors(configurations, { webhooks: [{ ...webhook, ...change }] });
const at = (field: string, detail: string): string => `webhooks[0].${field}: ${detail}`;

describe('a webhook', () => {
  it.each<object>([
    {},
    { clientConfig: { url: 'https://example.com:8443/a/b' } },
    { clientConfig: { service: { namespace: 'n', name: 's' } } },
    { rules: [{ ...rule, operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }] },
    { rules: [{ ...rule, resources: ['*', 'pods/status', 'nodes/*'] }] },
    { matchConditions: [{ name: 'a', expression: 'true' }] },
    { admissionReviewVersions: ['v1', 'v2'] },
    { timeoutSeconds: 30 },
  ])('is accepted with %j', (change) => {
    expect(errorsWith(change)).toEqual([]);
  });

  it.each<[object, string[]]>([
    [{ name: 'short' }, ['Invalid value: "short": should be a domain with at least three segments separated by dots']],
    [{ name: '' }, ['Required value']],
  ])('has a name: %j', (change, details) => {
    expect(errorsWith(change)).toEqual(details.map((detail) => at('name', detail)));
  });

  it.each<[object, string[]]>([
    [{}, [at('clientConfig', 'Required value: exactly one of url or service is required')]],
    [{ url: 'https://a', service }, [at('clientConfig', 'Required value: exactly one of url or service is required')]],
    [
      { url: 'http://a' },
      [
        at(
          'clientConfig.url',
          `Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`,
        ),
      ],
    ],
    [
      { url: 'https://' },
      [at('clientConfig.url', 'Invalid value: "": host must be specified; desired format: https://host[/path]')],
    ],
    [
      { url: 'https://u:p@a/b?c=d#e' },
      [
        at('clientConfig.url', 'Invalid value: "u:p": user information is not permitted in the URL'),
        at('clientConfig.url', 'Invalid value: "e": fragments are not permitted in the URL'),
        at('clientConfig.url', 'Invalid value: "c=d": query parameters are not permitted in the URL'),
      ],
    ],
    [{ service: { ...service, name: '' } }, [at('clientConfig.service.name', 'Required value')]],
    [
      { service: { ...service, port: 0 } },
      [at('clientConfig.service.port', 'Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive')],
    ],
    [
      { service: { ...service, path: 'x' } },
      [at('clientConfig.service.path', `Invalid value: "x": must start with a '/'`)],
    ],
    [
      { service: { ...service, path: '/a//b' } },
      [at('clientConfig.service.path', 'Invalid value: "/a//b": segment[1] may not be empty')],
    ],
  ])('is reached by %j', (clientConfig, errors) => {
    const found = errorsWith({ clientConfig });
    expect(found.slice(0, errors.length)).toEqual(errors);
  });

  it.each<[object, string]>([
    [{ operations: [] }, at('rules[0].operations', 'Required value')],
    [
      { operations: ['*', 'CREATE'] },
      at('rules[0].operations', `Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`),
    ],
    [
      { operations: ['GET'] },
      at(
        'rules[0].operations[0]',
        'Unsupported value: "GET": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"',
      ),
    ],
    [
      { apiGroups: ['*', 'apps'] },
      at('rules[0].apiGroups', `Invalid value: ["*","apps"]: if '*' is present, must not specify other API groups`),
    ],
    [{ apiVersions: [''] }, at('rules[0].apiVersions[0]', 'Required value')],
    [{ resources: [] }, at('rules[0].resources', 'Required value')],
    [
      { resources: ['*/*', 'pods'] },
      at('rules[0].resources', `Invalid value: ["*/*","pods"]: if '*/*' is present, must not specify other resources`),
    ],
    [
      { resources: ['pods/*', 'pods/status'] },
      at('rules[0].resources[1]', `Invalid value: "pods/status": if 'pods/*' is present, must not specify pods/status`),
    ],
    [
      { resources: ['*/status', 'pods/status'] },
      at(
        'rules[0].resources[1]',
        `Invalid value: "pods/status": if '*/status' is present, must not specify pods/status`,
      ),
    ],
    [
      { resources: ['*', 'pods'] },
      at(
        'rules[0].resources',
        `Invalid value: ["*","pods"]: if '*' is present, must not specify other resources without subresources`,
      ),
    ],
  ])('is asked about %j', (change, error) => {
    expect(errorsWith({ rules: [{ ...rule, ...change }] })).toEqual([error]);
  });

  it.each<[object, string]>([
    [
      { timeoutSeconds: 31 },
      at('timeoutSeconds', 'Invalid value: 31: the timeout value must be between 1 and 30 seconds'),
    ],
    [{ admissionReviewVersions: [] }, at('admissionReviewVersions', 'Required value: must specify one of v1, v1beta1')],
    [
      { admissionReviewVersions: ['v9'] },
      at('admissionReviewVersions', 'Invalid value: ["v9"]: must include at least one of v1, v1beta1'),
    ],
    [
      { admissionReviewVersions: ['v1', 'v1'] },
      at('admissionReviewVersions[1]', 'Invalid value: "v1": duplicate version'),
    ],
    [{ matchConditions: [{ name: 'a', expression: ' ' }] }, at('matchConditions[0].expression', 'Required value')],
    [{ matchConditions: [{ name: '', expression: 'true' }] }, at('matchConditions[0].name', 'Required value')],
  ])('is refused with %j', (change, error) => {
    expect(errorsWith(change)).toEqual([error]);
  });

  it('has conditions with names of their own, and not too many', () => {
    const conditions = Array.from({ length: 65 }, (_, index) => ({ name: `c${index % 64}`, expression: 'true' }));
    expect(errorsWith({ matchConditions: conditions })).toEqual([
      at('matchConditions', 'Too many: 65: must have at most 64 items'),
      at('matchConditions[64].name', 'Duplicate value: "c0"'),
    ]);
  });

  it('has a name of its own', () => {
    expect(createErrors(configurations, { webhooks: [webhook, webhook] })).toEqual([
      'webhooks[1].name: Duplicate value: "a.example.com"',
    ]);
  });
});

import { child, duplicate, type FieldError, invalid, required, tooMany } from '../../field-error.ts';
import type { KubeObject } from '../../meta.ts';
import { dns1035LabelErrors, dnsSubdomainErrors, portNumberErrors, qualifiedNameErrors } from '../../names.ts';
import { type Fields, has, numberAt, objectAt, objectsAt, textAt, textsAt } from '../core/fields.ts';
import { labelSelectorErrors } from '../validation.ts';
import { ruleErrors } from './rule-validation.ts';

/** What is wrong with webhook configurations that the schema cannot say. */

const MATCH_CONDITIONS_MAX = 64;
const TIMEOUT_SECONDS_MAX = 30;
const REVIEW_VERSIONS = ['v1', 'v1beta1'];

/** The errors of all webhooks of a configuration, validating or mutating. */
export function webhooksErrors(configuration: KubeObject): FieldError[] {
  const names = new Set<string>();
  return objectsAt(configuration, 'webhooks').flatMap((webhook, index) => {
    const path = child('webhooks', index);
    const errors = webhookErrors(webhook, path);
    const name = textAt(webhook, 'name');
    if (name !== '' && names.has(name)) errors.push(duplicate(child(path, 'name'), name));
    names.add(name);
    return errors;
  });
}

function webhookErrors(webhook: Fields, path: string): FieldError[] {
  const errors = has(webhook, 'name') ? nameErrors(textAt(webhook, 'name'), child(path, 'name')) : [];
  objectsAt(webhook, 'rules').forEach((rule, index) => {
    errors.push(...ruleErrors(rule, child(child(path, 'rules'), index)));
  });
  const timeoutSeconds = numberAt(webhook, 'timeoutSeconds');
  if (timeoutSeconds !== undefined && (timeoutSeconds < 1 || timeoutSeconds > TIMEOUT_SECONDS_MAX)) {
    const detail = `the timeout value must be between 1 and ${TIMEOUT_SECONDS_MAX} seconds`;
    errors.push(invalid(child(path, 'timeoutSeconds'), timeoutSeconds, detail));
  }
  for (const field of ['namespaceSelector', 'objectSelector']) {
    errors.push(...labelSelectorErrors(objectAt(webhook, field), child(path, field)));
  }
  return [
    ...errors,
    ...clientConfigErrors(objectAt(webhook, 'clientConfig'), child(path, 'clientConfig')),
    ...matchConditionsErrors(objectsAt(webhook, 'matchConditions'), child(path, 'matchConditions')),
    ...(has(webhook, 'admissionReviewVersions')
      ? reviewVersionsErrors(textsAt(webhook, 'admissionReviewVersions'), child(path, 'admissionReviewVersions'))
      : []),
  ];
}

function nameErrors(name: string, path: string): FieldError[] {
  if (name === '') return [required(path)];
  const errors = dnsSubdomainErrors(name);
  if (errors.length > 0) return [invalid(path, name, errors.join(','))];
  if (name.split('.').length >= 3) return [];
  return [invalid(path, name, 'should be a domain with at least three segments separated by dots')];
}

function clientConfigErrors(config: Fields | undefined, path: string): FieldError[] {
  if (config === undefined) return [];
  if (has(config, 'url') === has(config, 'service')) {
    return [required(path, 'exactly one of url or service is required')];
  }
  if (has(config, 'url')) return urlErrors(textAt(config, 'url'), child(path, 'url'));
  return serviceErrors(objectAt(config, 'service'), child(path, 'service'));
}

const URL_PARTS = /^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?:\/\/([^/?#]*))?[^?#]*(?:\?([^#]*))?(?:#(.*))?$/s;

function urlErrors(url: string, path: string): FieldError[] {
  const form = '; desired format: https://host[/path]';
  const [, scheme = '', authority = '', query = '', fragment = ''] = URL_PARTS.exec(url) ?? [];
  const at = authority.lastIndexOf('@');
  const errors: FieldError[] = [];
  if (scheme.toLowerCase() !== 'https') {
    errors.push(invalid(path, scheme, `'https' is the only allowed URL scheme${form}`));
  }
  if (authority.slice(at + 1) === '') errors.push(invalid(path, '', `host must be specified${form}`));
  if (at >= 0) errors.push(invalid(path, authority.slice(0, at), 'user information is not permitted in the URL'));
  if (fragment !== '') errors.push(invalid(path, fragment, 'fragments are not permitted in the URL'));
  if (query !== '') errors.push(invalid(path, query, 'query parameters are not permitted in the URL'));
  return errors;
}

function serviceErrors(service: Fields | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['name', 'namespace']) {
    if (has(service, field) && textAt(service, field) === '') errors.push(required(child(path, field)));
  }
  const port = numberAt(service, 'port');
  const portErrors = port === undefined ? [] : portNumberErrors(port);
  if (portErrors.length > 0) {
    errors.push(invalid(child(path, 'port'), port, `port is not valid: ${portErrors.join(', ')}`));
  }
  return [...errors, ...urlPathErrors(textAt(service, 'path'), child(path, 'path'))];
}

function urlPathErrors(urlPath: string, path: string): FieldError[] {
  if (urlPath === '' || urlPath === '/') return [];
  if (urlPath === '//') return [invalid(path, urlPath, 'segment[0] may not be empty')];
  const errors = urlPath.startsWith('/') ? [] : [invalid(path, urlPath, "must start with a '/'")];
  const steps = urlPath.slice(1).replace(/\/$/, '').split('/');
  steps.forEach((step, index) => {
    const details = step === '' ? ['may not be empty'] : dnsSubdomainErrors(step);
    const glue = step === '' ? ' ' : ': ';
    errors.push(...details.map((detail) => invalid(path, urlPath, `segment[${index}]${glue}${detail}`)));
  });
  return errors;
}

function matchConditionsErrors(conditions: readonly Fields[], path: string): FieldError[] {
  const errors =
    conditions.length > MATCH_CONDITIONS_MAX ? [tooMany(path, conditions.length, MATCH_CONDITIONS_MAX)] : [];
  const names = new Set<string>();
  conditions.forEach((condition, index) => {
    const at = child(path, index);
    const name = textAt(condition, 'name');
    const expression = textAt(condition, 'expression').trim();
    if (has(condition, 'expression') && expression === '') errors.push(required(child(at, 'expression')));
    if (has(condition, 'name') && name === '') errors.push(required(child(at, 'name')));
    if (name === '') return;
    errors.push(...qualifiedNameErrors(name).map((detail) => invalid(child(at, 'name'), name, detail)));
    if (names.has(name)) errors.push(duplicate(child(at, 'name'), name));
    names.add(name);
  });
  return errors;
}

function reviewVersionsErrors(versions: readonly string[], path: string): FieldError[] {
  if (versions.length === 0) return [required(path, `must specify one of ${REVIEW_VERSIONS.join(', ')}`)];
  const errors = versions.flatMap((version, index) => {
    const at = child(path, index);
    if (versions.indexOf(version) < index) return [invalid(at, version, 'duplicate version')];
    return dns1035LabelErrors(version).map((detail) => invalid(at, version, detail));
  });
  if (!versions.some((version) => REVIEW_VERSIONS.includes(version))) {
    errors.push(invalid(path, versions, `must include at least one of ${REVIEW_VERSIONS.join(', ')}`));
  }
  return errors;
}

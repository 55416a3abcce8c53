import { child, type FieldError, invalid, notSupported, required } from '../../field-error.ts';
import { type Fields, has, textsAt } from '../core/fields.ts';

const OPERATIONS = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'];

/** What is wrong with a rule that says which requests a webhook is asked about. */
export function ruleErrors(rule: Fields, path: string): FieldError[] {
  const operationsPath = child(path, 'operations');
  const operations = textsAt(rule, 'operations');
  return [
    ...wildcardErrors(rule, path, 'operations', 'operations'),
    ...operations.flatMap((operation, index) =>
      OPERATIONS.includes(operation) ? [] : [notSupported(child(operationsPath, index), operation, OPERATIONS)],
    ),
    ...wildcardErrors(rule, path, 'apiGroups', 'API groups'),
    ...wildcardErrors(rule, path, 'apiVersions', 'API versions'),
    ...emptyErrors(rule, path, 'apiVersions'),
    ...resourcesErrors(textsAt(rule, 'resources'), child(path, 'resources')),
  ];
}

/** Lists that have to say something, and nothing besides `*`. */
function wildcardErrors(rule: Fields, path: string, field: string, noun: string): FieldError[] {
  const values = textsAt(rule, field);
  if (values.length === 0) return [required(child(path, field))];
  if (values.length === 1 || !values.includes('*')) return [];
  return [invalid(child(path, field), values, `if '*' is present, must not specify other ${noun}`)];
}

function emptyErrors(rule: Fields, path: string, field: string): FieldError[] {
  if (!has(rule, field)) return [];
  return textsAt(rule, field).flatMap((value, index) =>
    value === '' ? [required(child(child(path, field), index))] : [],
  );
}

/** `pods`, `pods/status`, `pods/*`, `*`, `*` with a subresource: none may say what another says already. */
function resourcesErrors(resources: readonly string[], path: string): FieldError[] {
  if (resources.length === 0) return [required(path)];
  const errors: FieldError[] = [];
  const wholeResources = new Set<string>();
  const everywhere = new Set<string>();
  resources.forEach((resource, index) => {
    const at = child(path, index);
    if (resource === '') errors.push(required(at));
    const slash = resource.indexOf('/');
    if (slash < 0) return;
    const parent = resource.slice(0, slash);
    const subresource = resource.slice(slash + 1);
    if (wholeResources.has(parent)) {
      errors.push(invalid(at, resource, `if '${parent}/*' is present, must not specify ${resource}`));
    }
    if (everywhere.has(subresource)) {
      errors.push(invalid(at, resource, `if '*/${subresource}' is present, must not specify ${resource}`));
    }
    if (subresource === '*') wholeResources.add(parent);
    if (parent === '*') everywhere.add(subresource);
  });
  if (resources.length > 1 && resources.includes('*/*')) {
    errors.push(invalid(path, resources, "if '*/*' is present, must not specify other resources"));
  }
  if (
    resources.includes('*') &&
    resources.some((resource) => resource !== '*' && resource !== '' && !resource.includes('/'))
  ) {
    errors.push(invalid(path, resources, "if '*' is present, must not specify other resources without subresources"));
  }
  return errors;
}

import { type ApiError, forbiddenRequest, internalError, notFound } from '../../../api/status.ts';
import type { Selector } from '../../../machinery/selectors.ts';
import type { AdmissionAttributes, Registry } from '../../registry/contract.ts';
import { isMainResource, isResource, nameOf, namespaceOf } from '../attributes.ts';
import type { ParsedSelector } from './configuration.ts';
import { evaluateMatchConditions } from './match-conditions.ts';
import type { Invocation } from './source.ts';

/** Whether a webhook whose rules match wants this very object. Throws where that cannot be told. */
export function wantsObject(
  invocation: Invocation,
  attributes: AdmissionAttributes,
  registry: Pick<Registry, 'view'>,
): boolean {
  const { namespaceSelector, objectSelector } = invocation.compiled;
  if (!inNamespace(namespaceSelector, attributes, registry)) return false;
  const selector = selectorOf(objectSelector);
  if (selector.requirements.length > 0) {
    const { object, oldObject } = attributes;
    const isSelected = [object, oldObject].some((each) => each && selector.matches(each.metadata?.labels));
    if (!isSelected) return false;
  }
  const verdict = evaluateMatchConditions(invocation, attributes);
  if ('error' in verdict) throw forbiddenRequest(attributes.target.definition, nameOf(attributes), verdict.error);
  return verdict.matches;
}

function selectorOf(parsed: ParsedSelector): Selector {
  if ('error' in parsed) throw internalError(parsed.error);
  return parsed.selector;
}

/** Cluster-scoped objects other than namespaces are never exempt. */
function inNamespace(
  parsed: ParsedSelector,
  attributes: AdmissionAttributes,
  registry: Pick<Registry, 'view'>,
): boolean {
  const namespace = namespaceOf(attributes);
  if (namespace === '' && !isResource(attributes, '', 'namespaces')) return true;
  const selector = selectorOf(parsed);
  return selector.requirements.length === 0 || selector.matches(namespaceLabels(attributes, namespace, registry));
}

function namespaceLabels(
  attributes: AdmissionAttributes,
  namespace: string,
  registry: Pick<Registry, 'view'>,
): Record<string, string> | undefined {
  // A namespace that is being written is judged by what it will be.
  const isWritten = attributes.operation === 'CREATE' || attributes.operation === 'UPDATE';
  if (isWritten && attributes.object && isMainResource(attributes, '', 'namespaces')) {
    return attributes.object.metadata.labels;
  }
  const found = registry.view('namespaces').get('', namespace);
  if (!found) throw missingNamespace(namespace);
  return found.metadata.labels;
}

function missingNamespace(name: string): ApiError {
  return notFound({ group: '', plural: 'namespaces' }, name);
}

import { type ApiError, forbiddenRequest } from '../../api/status.ts';
import type { AdmissionAttributes } from '../registry/contract.ts';

/** Questions that every admission plug-in asks of a request. */

/** Whether the request is for this resource or one of its subresources, in any version. */
export function isResource(attributes: AdmissionAttributes, group: string, plural: string): boolean {
  const { definition } = attributes.target;
  return definition.plural === plural && definition.group === group;
}

/** Whether the request is for this resource itself, not for a subresource. */
export function isMainResource(attributes: AdmissionAttributes, group: string, plural: string): boolean {
  return isResource(attributes, group, plural) && subresourceOf(attributes) === '';
}

/** The subresource, or the empty string. */
export function subresourceOf(attributes: AdmissionAttributes): string {
  return attributes.target.subresource ?? '';
}

/** The name as the request or its object has it; empty while a generateName is not completed yet. */
export function nameOf(attributes: AdmissionAttributes): string {
  return attributes.target.name || (attributes.object?.metadata.name ?? '');
}

/** The namespace that a request is about; for a Namespace object that is the namespace itself, as kube-apiserver has it. */
export function namespaceOf(attributes: AdmissionAttributes): string {
  return isResource(attributes, '', 'namespaces') ? nameOf(attributes) : attributes.target.namespace;
}

/** 403 in admission's own words: the name falls back to the generateName, then to `Unknown`. */
export function refusal(attributes: AdmissionAttributes, detail: string): ApiError {
  const name = nameOf(attributes) || attributes.object?.metadata.generateName || 'Unknown';
  return forbiddenRequest(attributes.target.definition, name, detail);
}

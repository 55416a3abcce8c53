import { type FieldError, invalid, required, tooLong } from '../../field-error.ts';
import { byteLength, dnsLabelErrors, dnsSubdomainErrors } from '../../names.ts';

const DOMAIN_BYTES_MAX = 253;
/** The domain, a slash, and room for a whole object name of a namespace. */
const NAME_BYTES_MAX = DOMAIN_BYTES_MAX + 1 + 253 + 63 + 1;

/** What is wrong with the name of a signer: a domain of at least two labels, a slash, and a path. */
export function signerNameErrors(name: string, path: string): FieldError[] {
  if (name === '') return [required(path)];
  const [domain = '', rest = '', ...others] = name.split('/');
  if (!name.includes('/') || others.length > 0) {
    return [invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")];
  }
  const errors = byteLength(domain) > DOMAIN_BYTES_MAX ? [tooLong(path, DOMAIN_BYTES_MAX)] : [];
  const domainLabels = domain.split('.');
  errors.push(...firstErrors(domainLabels, dnsLabelErrors).map((detail) => invalid(path, domain, detail)));
  if (domainLabels.length < 2) {
    errors.push(invalid(path, domain, 'should be a domain with at least two segments separated by dots'));
  }
  errors.push(...firstErrors(rest.split('.'), dnsSubdomainErrors).map((detail) => invalid(path, rest, detail)));
  if (byteLength(name) > NAME_BYTES_MAX) errors.push(tooLong(path, NAME_BYTES_MAX));
  return errors;
}

/** Only the first bad label is told of: the others would sound the same. */
function firstErrors(labels: readonly string[], errorsOf: (label: string) => string[]): string[] {
  for (const label of labels) {
    const errors = errorsOf(label);
    if (errors.length > 0) return errors.map((error) => `validating label ${JSON.stringify(label)}: ${error}`);
  }
  return [];
}

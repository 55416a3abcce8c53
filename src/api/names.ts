/** The rules for names, keys and values, worded as Kubernetes words them: people search for these sentences. */

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const LABEL_1035 = '[a-z]([-a-z0-9]*[a-z0-9])?';
const QUALIFIED = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const LABEL_VALUE = `(${QUALIFIED})?`;
const CONFIG_KEY = '[-._a-zA-Z0-9]+';

const LABEL_LENGTH_MAX = 63;
const SUBDOMAIN_LENGTH_MAX = 253;
const PORT_NAME_LENGTH_MAX = 15;

const whole = (pattern: string): RegExp => new RegExp(`^(?:${pattern})$`);
const labelPattern = whole(LABEL);
const subdomainPattern = whole(SUBDOMAIN);
const label1035Pattern = whole(LABEL_1035);
const qualifiedPattern = whole(QUALIFIED);
const labelValuePattern = whole(LABEL_VALUE);
const configKeyPattern = whole(CONFIG_KEY);

/** `must be no more than 63 characters`. */
export function lengthMessage(max: number): string {
  return `must be no more than ${max} characters`;
}

/** A sentence with examples and the pattern behind it. */
export function patternMessage(sentence: string, pattern: string, ...examples: string[]): string {
  if (examples.length === 0) return `${sentence} (regex used for validation is '${pattern}')`;
  const quoted = examples.map((example) => `'${example}', `).join(' or ');
  return `${sentence} (e.g. ${quoted}regex used for validation is '${pattern}')`;
}

/** `must be between 1 and 65535, inclusive`. */
export function rangeMessage(low: number, high: number): string {
  return `must be between ${low} and ${high}, inclusive`;
}

/** What is wrong with a DNS-1123 subdomain: the names of most objects. */
export function dnsSubdomainErrors(name: string): string[] {
  const errors: string[] = [];
  if (byteLength(name) > SUBDOMAIN_LENGTH_MAX) errors.push(lengthMessage(SUBDOMAIN_LENGTH_MAX));
  if (!subdomainPattern.test(name)) {
    errors.push(
      patternMessage(
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character",
        SUBDOMAIN,
        'example.com',
      ),
    );
  }
  return errors;
}

/** What is wrong with a DNS-1123 label: namespaces, containers, volumes. */
export function dnsLabelErrors(name: string): string[] {
  const errors: string[] = [];
  if (byteLength(name) > LABEL_LENGTH_MAX) errors.push(lengthMessage(LABEL_LENGTH_MAX));
  if (labelPattern.test(name)) return errors;
  if (subdomainPattern.test(name)) return [...errors, 'must not contain dots'];
  errors.push(
    patternMessage(
      "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character",
      LABEL,
      'my-name',
      '123-abc',
    ),
  );
  return errors;
}

/** What is wrong with a DNS-1035 label: services. */
export function dns1035LabelErrors(name: string): string[] {
  const errors: string[] = [];
  if (byteLength(name) > LABEL_LENGTH_MAX) errors.push(lengthMessage(LABEL_LENGTH_MAX));
  if (!label1035Pattern.test(name)) {
    errors.push(
      patternMessage(
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character",
        LABEL_1035,
        'my-name',
        'abc-123',
      ),
    );
  }
  return errors;
}

const QUALIFIED_SENTENCE =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/** What is wrong with `[prefix/]name`: label keys, annotation keys (lower-cased first), finalizers, resource names. */
export function qualifiedNameErrors(name: string): string[] {
  const rule = patternMessage(QUALIFIED_SENTENCE, QUALIFIED, 'MyName', 'my.name', '123-abc');
  const slash = name.indexOf('/');
  if (slash !== name.lastIndexOf('/')) {
    return [`a qualified name ${rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`];
  }
  const errors: string[] = [];
  if (slash === 0) errors.push('prefix part must be non-empty');
  if (slash > 0) {
    for (const message of dnsSubdomainErrors(name.slice(0, slash))) errors.push(`prefix part ${message}`);
  }
  const own = name.slice(slash + 1);
  if (own === '') errors.push('name part must be non-empty');
  else if (byteLength(own) > LABEL_LENGTH_MAX) errors.push(`name part ${lengthMessage(LABEL_LENGTH_MAX)}`);
  if (!qualifiedPattern.test(own)) errors.push(`name part ${rule}`);
  return errors;
}

/** What is wrong with a label's value; empty is fine. */
export function labelValueErrors(value: string): string[] {
  const errors: string[] = [];
  if (byteLength(value) > LABEL_LENGTH_MAX) errors.push(lengthMessage(LABEL_LENGTH_MAX));
  if (!labelValuePattern.test(value)) {
    errors.push(
      patternMessage(
        `a valid label must be an empty string or consist of ${QUALIFIED_SENTENCE.slice('must consist of '.length)}`,
        LABEL_VALUE,
        'MyValue',
        'my_value',
        '12345',
      ),
    );
  }
  return errors;
}

// oxlint-disable-next-line no-control-regex -- exactly those are meant
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/;

/**
 * What is wrong with a name that need only be one segment of a path: RBAC's. Kubernetes knows no bound for these; ours is
 * that of other names, and what no URL of ours can carry is refused here rather than never found again.
 */
export function pathSegmentErrors(name: string): string[] {
  if (name === '.' || name === '..') return [`may not be '${name}'`];
  const errors = ['/', '%'].filter((banned) => name.includes(banned)).map((banned) => `may not contain '${banned}'`);
  if (CONTROL_CHARACTER.test(name)) errors.push('may not contain control characters');
  if (byteLength(name) > SUBDOMAIN_LENGTH_MAX) errors.push(lengthMessage(SUBDOMAIN_LENGTH_MAX));
  return errors;
}

/** What is wrong with a key of a ConfigMap or Secret, which must do as a file name. */
export function configKeyErrors(key: string): string[] {
  const errors: string[] = [];
  if (byteLength(key) > SUBDOMAIN_LENGTH_MAX) errors.push(lengthMessage(SUBDOMAIN_LENGTH_MAX));
  if (!configKeyPattern.test(key)) {
    errors.push(
      patternMessage(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        CONFIG_KEY,
        'key.name',
        'KEY_NAME',
        'key-name',
      ),
    );
  }
  if (key === '.' || key === '..') errors.push(`must not be '${key}'`);
  else if (key.startsWith('..')) errors.push("must not start with '..'");
  return errors;
}

/** What is wrong with the name of an environment variable: printable ASCII without `=`. */
export function environmentNameErrors(name: string): string[] {
  if (name === '') return ['environment variable name must be non-empty'];
  if (/^[ -<>-~]*$/.test(name)) return [];
  return ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
}

/** What is wrong with the name of a container's port (an IANA service name). */
export function portNameErrors(name: string): string[] {
  const errors: string[] = [];
  if (byteLength(name) > PORT_NAME_LENGTH_MAX) errors.push(lengthMessage(PORT_NAME_LENGTH_MAX));
  if (!/^[-a-z0-9]+$/.test(name)) {
    errors.push('must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)');
  }
  if (!/[a-z]/.test(name)) errors.push('must contain at least one letter (a-z)');
  if (name.includes('--')) errors.push('must not contain consecutive hyphens');
  if (name.startsWith('-') || name.endsWith('-')) errors.push('must not begin or end with a hyphen');
  return errors;
}

/** What is wrong with a port's number. */
export function portNumberErrors(port: number): string[] {
  return port >= 1 && port <= 65_535 ? [] : [rangeMessage(1, 65_535)];
}

/**
 * A name that will have letters appended, made fit for the rules of whole names: a trailing dash is fine there.
 */
export function maskTrailingDash(prefix: string): string {
  return prefix.length > 1 && prefix.endsWith('-') ? `${prefix.slice(0, -1)}a` : prefix;
}

/** The length in UTF-8, which is what limits on the wire count. */
export function byteLength(text: string): number {
  let length = text.length;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0x80) continue;
    // Each half of a surrogate pair stands for two of the pair's four bytes.
    length += code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 1 : 2;
  }
  return length;
}

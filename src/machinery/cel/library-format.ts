import {
  dns1035LabelErrors,
  dnsLabelErrors,
  dnsSubdomainErrors,
  labelValueErrors,
  maskTrailingDash,
  qualifiedNameErrors,
} from '../../api/names.ts';
import { formatCheck } from '../schema/formats.ts';
import { CHARACTERS_PER_UNIT } from './budget.ts';
import { type Overload, overload } from './functions.ts';
import { ArrayList, OpaqueValue, OptionalValue } from './values.ts';

/** Kubernetes' named formats: `format.dns1123Label().validate(x)` answers what is wrong with `x`, or none. */
class FormatValue extends OpaqueValue {
  readonly typeName = 'kubernetes.NamedFormat';
  readonly name: string;
  readonly validate: (text: string) => string[];

  constructor(name: string, validate: (text: string) => string[]) {
    super();
    this.name = name;
    this.validate = validate;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof FormatValue && other.name === this.name;
  }
}

function checked(format: string, message: string): (text: string) => string[] {
  const check = formatCheck(format, false);
  return (text) => (check?.(text) ? [] : [message]);
}

const FORMATS: ReadonlyMap<string, FormatValue> = new Map(
  (
    [
      ['dns1123Label', dnsLabelErrors],
      ['dns1123Subdomain', dnsSubdomainErrors],
      ['dns1035Label', dns1035LabelErrors],
      ['qualifiedName', qualifiedNameErrors],
      ['dns1123LabelPrefix', (text) => dnsLabelErrors(maskTrailingDash(text))],
      ['dns1123SubdomainPrefix', (text) => dnsSubdomainErrors(maskTrailingDash(text))],
      ['dns1035LabelPrefix', (text) => dns1035LabelErrors(maskTrailingDash(text))],
      ['labelValue', labelValueErrors],
      ['uri', checked('uri', 'invalid URI for request')],
      ['uuid', checked('uuid', 'does not match the UUID format')],
      ['byte', checked('byte', 'invalid base64')],
      ['date', checked('date', 'invalid date')],
      ['datetime', checked('datetime', 'invalid datetime')],
    ] as [string, (text: string) => string[]][]
  ).map(([name, validate]) => [name, new FormatValue(name, validate)]),
);

export const formatFunctions: readonly Overload[] = [
  ...Array.from(FORMATS, ([name, format]) => overload(`format.${name}(): Format`, () => format)),
  overload('format.named(string): optional(Format)', ([name]) => {
    const format = FORMATS.get(name as string);
    return format ? new OptionalValue(format) : OptionalValue.none;
  }),
  overload('Format.validate(string): optional(list(string))', ([format, text], budget) => {
    budget.spend((text as string).length / CHARACTERS_PER_UNIT);
    const errors = (format as FormatValue).validate(text as string);
    return errors.length === 0 ? OptionalValue.none : new OptionalValue(new ArrayList(errors));
  }),
];

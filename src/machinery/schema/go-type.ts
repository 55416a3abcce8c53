import type { Schema } from '../../api/schema.ts';

/**
 * The Go type that Kubernetes declares where our schema has this, as its decoder's messages name it: kubectl users know
 * `[]v1.Container`. Go's own names for strings with few values (`v1.PullPolicy`) are not in our schemas; they are
 * strings here.
 */
export function goTypeOf(schema: Schema): string {
  if (schema.name !== undefined) return schema.name.split('.').slice(-2).join('.');
  if (schema.format === 'raw') return 'runtime.RawExtension';
  if (schema['x-kubernetes-int-or-string'] === true)
    return schema.format === 'quantity' ? 'resource.Quantity' : 'intstr.IntOrString';
  switch (schema.type) {
    case 'object':
      return typeof schema.additionalProperties === 'object'
        ? `map[string]${goTypeOf(schema.additionalProperties)}`
        : 'map[string]interface {}';
    case 'array':
      return `[]${schema.items ? goTypeOf(schema.items) : 'interface {}'}`;
    case 'string':
      return stringType(schema.format ?? '');
    case 'integer':
      return schema.format === 'int32' ? 'int32' : 'int64';
    case 'number':
      return 'float64';
    case 'boolean':
      return 'bool';
    case undefined:
      return 'interface {}';
    default:
      return schema.type satisfies never;
  }
}

function stringType(format: string): string {
  switch (format) {
    case 'byte':
      return '[]uint8';
    case 'date-time':
      return 'v1.Time';
    case 'micro-time':
      return 'v1.MicroTime';
    case 'duration':
      return 'v1.Duration';
    default:
      return 'string';
  }
}

import type { JsonObject } from '../../meta.ts';
import { canonicalizeAmounts } from './amounts.ts';
import { has, objectAt, setDefault } from './fields.ts';

/** Defaults of what a claim asks for, also where a template does. */
export function applyClaimSpecDefaults(spec: JsonObject): void {
  setDefault(spec, 'volumeMode', 'Filesystem');
  canonicalizeAmounts(objectAt(spec, 'resources'), 'limits', 'requests');
  mirrorDataSource(spec);
}

/** A source of data is named in both fields, the old one and the one that may reach other namespaces. */
function mirrorDataSource(spec: JsonObject): void {
  const source = objectAt(spec, 'dataSource');
  const reference = objectAt(spec, 'dataSourceRef');
  if (source !== undefined && reference === undefined) spec['dataSourceRef'] = { ...source };
  else if (source === undefined && reference !== undefined && !has(reference, 'namespace')) {
    spec['dataSource'] = { ...reference };
  }
}

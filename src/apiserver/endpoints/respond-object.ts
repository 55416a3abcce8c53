import type { KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { toTable } from '../../machinery/table.ts';
import type { ApiResponse } from '../http/message.ts';
import type { Call } from './context.ts';
import { includeObjectOf, partialMetadata } from './list.ts';
import { respond } from './negotiate.ts';

/** One object in the form that the call asks for; `definition` has the columns of a table. */
export function respondObject(
  { representation, request }: Pick<Call, 'representation' | 'request'>,
  definition: ResourceDefinition,
  object: KubeObject,
  options: { readonly status: number; readonly warnings: readonly string[]; readonly nowMs: number },
): ApiResponse {
  const { status, warnings, nowMs } = options;
  if (representation.as === 'PartialObjectMetadata')
    return respond(representation, status, JSON.stringify(partialMetadata(object)), warnings);
  if (representation.as === 'Object') return respond(representation, status, JSON.stringify(object), warnings);
  const table = toTable(definition, [object], {
    nowMs,
    includeObject: includeObjectOf(request.query),
    listMeta: { resourceVersion: object.metadata.resourceVersion },
  });
  return respond(representation, status, JSON.stringify(table), warnings);
}

import { ApiError, type StatusCause } from '../../api/status.ts';
import { type Owner, identityOf } from './entries.ts';
import { type FieldSet, difference, isEmpty, pathsOf, showPath } from './field-set.ts';

/** Fields that another manager owns and that an apply would change. */
export interface Conflict {
  readonly owner: Owner;
  readonly fields: FieldSet;
}

/** The 409 that lists every field in conflict, worded as kubectl prints it. */
export function conflictError(conflicts: readonly Conflict[]): ApiError {
  const ordered = conflicts.toSorted((a, b) => (identityOf(a.owner) < identityOf(b.owner) ? -1 : 1));
  const causes: StatusCause[] = [];
  const lines: string[] = [];
  for (const { owner, fields } of ordered) {
    const name = showOwner(owner);
    lines.push(`conflicts with ${name}:`);
    for (const path of pathsOf(fields)) {
      causes.push({ reason: 'FieldManagerConflict', message: `conflict with ${name}`, field: showPath(path) });
      lines.push(`- ${showPath(path)}`);
    }
  }
  const [only] = causes;
  const summary =
    causes.length === 1 && only !== undefined
      ? `1 conflict: ${only.message}: ${only.field}`
      : `${causes.length} conflicts: ${lines.join('\n')}`;
  return new ApiError(409, 'Conflict', `Apply failed with ${summary}`, { causes });
}

/** Conflicts without those on fields in `allowed`. */
export function conflictsBeyond(conflicts: readonly Conflict[], allowed: FieldSet): readonly Conflict[] {
  return conflicts
    .map(({ owner, fields }) => ({ owner, fields: difference(fields, allowed) }))
    .filter(({ fields }) => !isEmpty(fields));
}

function showOwner({ manager, operation, apiVersion, subresource }: Owner): string {
  const through =
    subresource === undefined || subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`;
  // Appliers are one per name, whatever the version; updaters are told apart by it.
  const version = operation === 'Update' ? ` using ${apiVersion}` : '';
  return `${JSON.stringify(manager)}${through}${version}`;
}

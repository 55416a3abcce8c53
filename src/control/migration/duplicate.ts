import type { ApiError } from '../../api/status.ts';

/** Whether a migration could not be made because it is there already, or because the guest has another one. */
export function isDuplicate({ code, details }: ApiError): boolean {
  const causes = details?.causes ?? [];
  return code === 409 || (causes.length > 0 && causes.every(({ reason }) => reason === 'FieldValueDuplicate'));
}

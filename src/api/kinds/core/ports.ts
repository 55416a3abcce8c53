import { type FieldError, invalid } from '../../field-error.ts';
import { portNameErrors, portNumberErrors } from '../../names.ts';

/** What is wrong with a port that is given as number or name. */
export function portErrors(port: unknown, path: string): FieldError[] {
  if (typeof port === 'number') return portNumberErrors(port).map((message) => invalid(path, port, message));
  if (typeof port === 'string') return portNameErrors(port).map((message) => invalid(path, port, message));
  return [];
}

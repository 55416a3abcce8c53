/** Validation of paths in filesystems. */

import { type FieldError, invalid } from '../../field-error.ts';

/** Refuses `..` as an element. */
export function backstepErrors(path: string, field: string): FieldError[] {
  return path.split('/').includes('..') ? [invalid(field, path, "must not contain '..'")] : [];
}

/** Refuses absolute paths and `..`. */
export function descendingPathErrors(path: string, field: string): FieldError[] {
  const errors = path.startsWith('/') ? [invalid(field, path, 'must be a relative path')] : [];
  return [...errors, ...backstepErrors(path, field)];
}

/** Refuses also what begins with `..`, which the kubelet uses for its own files. */
export function localPathErrors(path: string, field: string): FieldError[] {
  const errors = descendingPathErrors(path, field);
  if (path.startsWith('..') && path !== '..' && !path.startsWith('../')) {
    errors.push(invalid(field, path, "must not start with '..'"));
  }
  return errors;
}

import type { FieldError } from '../../api/field-error.ts';
import type { Json } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { ruleErrors } from '../cel/structural-rules.ts';
import { withoutNulls } from './normalize.ts';
import { defaultErrors } from './structural-defaults.ts';
import { invariantErrors } from './structural-invariants.ts';
import { isReadable, keywordErrors } from './structural-keywords.ts';
import { shapeErrors } from './structural-shape.ts';
import { unique } from './validation-context.ts';

/**
 * Whether a CRD's `openAPIV3Schema` is structural, as apiextensions demands: what is wrong with it, each with the path
 * of the keyword below `path`. A schema without errors can be compiled. Later stages only run on what earlier ones
 * found sound, so that nobody is told of consequences before causes.
 */
export function structuralErrors(schema: Json, path: string): FieldError[] {
  const misshapen = shapeErrors(schema, path);
  if (misshapen.length > 0) return misshapen;
  const shaped = withoutNulls(schema as Schema);
  const errors = keywordErrors(shaped, path);
  if (isReadable(shaped)) errors.push(...invariantErrors(shaped, path));
  if (errors.length > 0) return unique(errors);
  const defaults = defaultErrors(shaped, path);
  return defaults.length > 0 ? defaults : ruleErrors(shaped, path);
}

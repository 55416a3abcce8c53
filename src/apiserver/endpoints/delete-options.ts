import type { JsonObject } from '../../api/meta.ts';
import { type FieldError, invalid, notSupported } from '../../api/field-error.ts';
import { badRequest, invalidObject } from '../../api/status.ts';
import { deleteOptionsSchema } from '../../api/kinds/meta-options.ts';
import { compileSchema } from '../../machinery/schema/compile.ts';
import type { ApiRequest } from '../http/message.ts';
import { isTrue } from '../http/request-info.ts';
import type { DeleteOptions } from '../registry/contract.ts';
import { readBody, refuseMistyped } from './body.ts';
import { dryRunErrors } from './write-options.ts';

/** DeleteOptions from the body, else from the query, as kube-apiserver reads them. */

export interface ReadDeleteOptions {
  readonly options: DeleteOptions;
  readonly dryRun: boolean;
}

const POLICIES = ['Foreground', 'Background', 'Orphan'] as const;

/** Reads the options of a DELETE. Throws 400 for what cannot be read, 422 for what it cannot mean. */
export async function readDeleteOptions(request: ApiRequest): Promise<ReadDeleteOptions> {
  const decoded = await readBody(request, (_apiVersion, kind) =>
    kind === 'DeleteOptions' ? deleteOptionsSchema : undefined,
  );
  if (decoded === undefined) return parseDeleteOptions(fromQuery(request.query));
  const { value } = decoded;
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw badRequest('the body of a DELETE must be DeleteOptions');
  const kind = value['kind'] ?? 'DeleteOptions';
  if (kind !== 'DeleteOptions')
    throw badRequest(`the body of a DELETE must be DeleteOptions, not ${JSON.stringify(kind)}`);
  // Nothing may be read leniently here: an option that is overlooked deletes what was to be spared.
  compileSchema(deleteOptionsSchema, { builtin: true }).prune(value);
  refuseMistyped({ schema: deleteOptionsSchema, kind, version: 'v1' }, value);
  return parseDeleteOptions(value);
}

function fromQuery(query: URLSearchParams): JsonObject {
  const value: JsonObject = {};
  const grace = query.get('gracePeriodSeconds');
  if (grace !== null && grace !== '') value['gracePeriodSeconds'] = wholeNumber(grace);
  const policy = query.get('propagationPolicy');
  if (policy !== null && policy !== '') value['propagationPolicy'] = policy;
  const orphan = query.get('orphanDependents');
  if (orphan !== null && orphan !== '') value['orphanDependents'] = isTrue(orphan);
  return value;
}

function wholeNumber(text: string): number {
  if (!/^-?\d{1,15}$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  return Number(text);
}

/** Checks what types cannot say. */
function parseDeleteOptions(value: JsonObject): ReadDeleteOptions {
  const { gracePeriodSeconds, propagationPolicy, orphanDependents, preconditions } = value;
  const dryRun = (value['dryRun'] ?? []) as string[];
  const errors = [...policyErrors(propagationPolicy, orphanDependents), ...dryRunErrors(dryRun)];
  if (errors.length > 0) throw invalidObject('meta.k8s.io', 'DeleteOptions', '', errors);
  const policy = policyOf(propagationPolicy, orphanDependents);
  const conditions = (preconditions ?? {}) as { uid?: string; resourceVersion?: string };
  const options: DeleteOptions = {
    ...(typeof gracePeriodSeconds === 'number' ? { gracePeriodSeconds } : {}),
    ...(policy ? { propagationPolicy: policy } : {}),
    ...(preconditions
      ? {
          preconditions: {
            ...(conditions.uid ? { uid: conditions.uid } : {}),
            ...(conditions.resourceVersion ? { resourceVersion: conditions.resourceVersion } : {}),
          },
        }
      : {}),
  };
  return { options, dryRun: dryRun.length > 0 };
}

function policyErrors(policy: unknown, orphanDependents: unknown): FieldError[] {
  if (policy === undefined || policy === null) return [];
  const errors: FieldError[] = [];
  if (orphanDependents !== undefined && orphanDependents !== null)
    errors.push(invalid('propagationPolicy', policy, 'orphanDependents and deletionPropagation cannot be both set'));
  if (!POLICIES.some((each) => each === policy))
    errors.push(notSupported('propagationPolicy', policy, [...POLICIES, 'nil']));
  return errors;
}

function policyOf(policy: unknown, orphanDependents: unknown): DeleteOptions['propagationPolicy'] {
  if (orphanDependents === true) return 'Orphan';
  if (orphanDependents === false) return 'Background';
  return POLICIES.find((each) => each === policy);
}

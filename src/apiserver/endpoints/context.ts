import { badRequest } from '../../api/status.ts';
import type { ApiRequest, RequestInfo, UserInfo } from '../http/message.ts';
import type { Target, WriteContext } from '../registry/contract.ts';
import { dryRunOf } from './body.ts';
import type { Representation } from './negotiate.ts';

/** A request for a served resource, authenticated and authorized. */
export interface Call {
  readonly request: ApiRequest;
  readonly info: RequestInfo;
  readonly user: UserInfo;
  readonly target: Target;
  readonly representation: Representation;
}

const MANAGER_LENGTH_MAX = 128;

/** The field manager: what the client says, else the first word of its user agent. */
function managerOf(request: ApiRequest): string {
  const explicit = request.query.get('fieldManager') ?? '';
  if (explicit.length > MANAGER_LENGTH_MAX)
    throw badRequest(`fieldManager: Too long: may not be more than ${MANAGER_LENGTH_MAX} bytes`);
  if (explicit !== '') return explicit;
  return (request.headers['user-agent'] ?? 'unknown').split('/', 1)[0]?.slice(0, MANAGER_LENGTH_MAX) ?? 'unknown';
}

/** The context of a write: who, under which name, and whether it is only a rehearsal. */
export function writeContext(call: Call, options: { dryRun?: boolean; isApply?: boolean } = {}): WriteContext {
  const { request, user } = call;
  return {
    user,
    dryRun: dryRunOf(request.query.getAll('dryRun').filter((value) => value !== '')) || (options.dryRun ?? false),
    fieldManager: managerOf(request),
    warnings: [],
    signal: request.signal,
    isApply: options.isApply ?? false,
  };
}

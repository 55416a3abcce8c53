import type { ApiRequest, RequestInfo, UserInfo } from '../http/message.ts';
import type { Target, WriteContext } from '../registry/contract.ts';
import type { Representation } from './negotiate.ts';
import { writeOptionsOf } from './write-options.ts';

/** A request for a served resource, authenticated and authorized. */
export interface Call {
  readonly request: ApiRequest;
  readonly info: RequestInfo;
  readonly user: UserInfo;
  readonly target: Target;
  readonly representation: Representation;
}

const MANAGER_LENGTH_MAX = 128;

/** The name that changes are recorded under: what the client says, else the first word of its user agent. */
function managerOf(explicit: string, request: ApiRequest): string {
  if (explicit !== '') return explicit;
  return (request.headers['user-agent'] ?? 'unknown').split('/', 1)[0]?.slice(0, MANAGER_LENGTH_MAX) ?? 'unknown';
}

/** The context of a write: who, under which name, and whether it is only a rehearsal. */
export function writeContext(call: Call, options: { dryRun?: boolean; isApply?: boolean } = {}): WriteContext {
  const { request, user } = call;
  const { dryRun, fieldManager } = writeOptionsOf(request);
  return {
    user,
    dryRun: dryRun || (options.dryRun ?? false),
    fieldManager: managerOf(fieldManager, request),
    warnings: [],
    // Most writes are done before anyone could ask for it.
    get signal() {
      return request.signal;
    },
    isApply: options.isApply ?? false,
  };
}

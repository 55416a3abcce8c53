import type { FieldError } from './field-error.ts';

/** metav1.Status, the shape of every error that the API answers. */
export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: { continue?: string };
  status: 'Success' | 'Failure';
  message?: string;
  reason?: StatusReason;
  details?: StatusDetails;
  code: number;
}

export type StatusReason =
  | 'Unauthorized'
  | 'Forbidden'
  | 'NotFound'
  | 'AlreadyExists'
  | 'Conflict'
  | 'Gone'
  | 'Invalid'
  | 'ServerTimeout'
  | 'Timeout'
  | 'TooManyRequests'
  | 'BadRequest'
  | 'MethodNotAllowed'
  | 'NotAcceptable'
  | 'RequestEntityTooLarge'
  | 'UnsupportedMediaType'
  | 'InternalError'
  | 'Expired'
  | 'ServiceUnavailable'
  | 'Unknown'
  | '';

export interface StatusCause {
  reason?: string;
  message?: string;
  field?: string;
}

export interface StatusDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
}

/** Which resource an error speaks of; `kind` in details is the plural, as kube-apiserver has it. */
export interface ResourceRef {
  readonly group: string;
  readonly plural: string;
}

/** `pods` or `deployments.apps`: how messages name a resource. */
export function qualified(resource: ResourceRef): string {
  return resource.group === '' ? resource.plural : `${resource.plural}.${resource.group}`;
}

/** The one error of this project's API: a Status that can be thrown. */
export class ApiError extends Error {
  readonly code: number;
  readonly reason: StatusReason;
  readonly details: StatusDetails | undefined;
  /** Where to go on with a list, for an error that is about one. */
  readonly continueToken: string | undefined;

  constructor(
    code: number,
    reason: StatusReason,
    message: string,
    details?: StatusDetails,
    cause?: unknown,
    continueToken?: string,
  ) {
    super(message, { cause });
    this.name = 'ApiError';
    this.code = code;
    this.reason = reason;
    this.details = details;
    this.continueToken = continueToken;
  }

  /** Anything thrown, as an ApiError; what is not one becomes a 500 that keeps the cause but does not show it. */
  static from(error: unknown): ApiError {
    if (error instanceof ApiError) return error;
    return new ApiError(500, 'InternalError', 'Internal error occurred', { causes: [] }, error);
  }

  /** Rebuilds the error from a Status that came over the wire. */
  static fromStatus(status: Pick<Status, 'code' | 'reason' | 'message' | 'details'>): ApiError {
    return new ApiError(status.code, status.reason ?? 'Unknown', status.message ?? '', status.details);
  }

  toStatus(): Status {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: this.continueToken === undefined ? {} : { continue: this.continueToken },
      status: 'Failure',
      message: this.message,
      ...(this.reason === '' ? {} : { reason: this.reason }),
      ...(this.details ? { details: withoutEmpty(this.details) } : {}),
      code: this.code,
    };
  }
}

/** Details as Go writes them: what is empty is left out. */
export function withoutEmpty(details: StatusDetails): StatusDetails {
  return Object.fromEntries(Object.entries(details).filter(([, value]) => value !== '' && value !== undefined));
}

export function notFound(resource: ResourceRef, name: string): ApiError {
  return new ApiError(404, 'NotFound', `${qualified(resource)} "${name}" not found`, {
    name,
    group: resource.group,
    kind: resource.plural,
  });
}

/** The answer for a path that names no served resource. */
export function pathNotFound(): ApiError {
  return new ApiError(404, 'NotFound', 'the server could not find the requested resource', {});
}

export function alreadyExists(resource: ResourceRef, name: string): ApiError {
  return new ApiError(409, 'AlreadyExists', `${qualified(resource)} "${name}" already exists`, {
    name,
    group: resource.group,
    kind: resource.plural,
  });
}

/** The answer where every generated name was taken; trying again may find a free one. */
export function noFreeName(resource: ResourceRef, name: string): ApiError {
  const detail = 'already exists, the server was not able to generate a unique name for the object';
  return new ApiError(409, 'AlreadyExists', `${qualified(resource)} "${name}" ${detail}`, {
    name,
    group: resource.group,
    kind: resource.plural,
    retryAfterSeconds: 1,
  });
}

export function conflict(resource: ResourceRef, name: string, detail: string): ApiError {
  return new ApiError(409, 'Conflict', `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${detail}`, {
    name,
    group: resource.group,
    kind: resource.plural,
  });
}

/** What an update with a stale resourceVersion is told. */
export function staleObject(resource: ResourceRef, name: string): ApiError {
  return conflict(
    resource,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  );
}

/** Characters of a name that a message shows: all of every name that is allowed. */
const NAME_SHOWN_MAX = 253;

/** 422 with one cause per field; the message lists them as kubectl prints it. */
export function invalidObject(group: string, kind: string, name: string, errors: readonly FieldError[]): ApiError {
  const sentences = errors.map((error) => (error.field === '' ? error.message : `${error.field}: ${error.message}`));
  const joined = sentences.length === 1 ? sentences[0] : `[${sentences.join(', ')}]`;
  const qualifiedKind = group === '' ? kind : `${kind}.${group}`;
  // A name may be what is wrong, and be all of the body.
  const shown = name.length > NAME_SHOWN_MAX ? `${name.slice(0, NAME_SHOWN_MAX)}...` : name;
  const causes = errors.map((error) => ({
    reason: error.type,
    message: error.message,
    field: error.field === '' ? '<nil>' : error.field,
  }));
  return new ApiError(422, 'Invalid', `${qualifiedKind} "${shown}" is invalid: ${joined}`, {
    name: shown,
    group,
    kind,
    causes,
  });
}

export function badRequest(message: string, cause?: unknown): ApiError {
  return new ApiError(400, 'BadRequest', message, undefined, cause);
}

export function forbiddenRequest(resource: ResourceRef, name: string, detail: string): ApiError {
  const subject = name === '' ? qualified(resource) : `${qualified(resource)} "${name}"`;
  return new ApiError(403, 'Forbidden', `${subject} is forbidden: ${detail}`, {
    name,
    group: resource.group,
    kind: resource.plural,
  });
}

export function unauthorized(): ApiError {
  return new ApiError(401, 'Unauthorized', 'Unauthorized');
}

/** The answer to a verb that a resource does not have. */
export function methodNotAllowed(): ApiError {
  return new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {});
}

/** What was asked about is no longer known; with a token, a list may go on all the same. */
export function expired(message: string, continueToken?: string): ApiError {
  return new ApiError(410, 'Expired', message, undefined, undefined, continueToken);
}

export function tooManyRequests(message: string, retryAfterSeconds: number, causes: StatusCause[] = []): ApiError {
  return new ApiError(429, 'TooManyRequests', message, { retryAfterSeconds, causes });
}

export function unsupportedMediaType(message: string): ApiError {
  return new ApiError(415, 'UnsupportedMediaType', message);
}

export function entityTooLarge(limitBytes: number): ApiError {
  return new ApiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${limitBytes}`);
}

export function internalError(detail: string, cause?: unknown): ApiError {
  return new ApiError(
    500,
    'InternalError',
    `Internal error occurred: ${detail}`,
    { causes: [{ message: detail }] },
    cause,
  );
}

export function serviceUnavailable(message: string, cause?: unknown): ApiError {
  return new ApiError(503, 'ServiceUnavailable', message, undefined, cause);
}

import { ApiError } from '../../api/status.ts';

/**
 * The answer to a patch that is well formed but does not fit the object: kube-apiserver says no more than this to the
 * client. What went wrong stays in the error's cause, for the log.
 */
export function rejectPatch(detail: string): ApiError {
  return new ApiError(
    422,
    'Invalid',
    'the server rejected our request due to an error in our request',
    {},
    new Error(detail),
  );
}

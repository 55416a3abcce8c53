import { ApiError } from '../api/status.ts';
import { TransportError } from '../kube/transport.ts';
import { UserError } from './failure.ts';

/** What API servers put before the words of webhooks. */
const WEBHOOK = /^admission webhook "[^"]*" denied the request: /;

/** What went wrong with a cluster as one sentence that says what to do about it; other errors as they are. */
export function apiFailure(error: unknown, server: string): unknown {
  if (error instanceof TransportError)
    return new UserError(
      `cannot talk to the API server at ${server} (${error.message}); see that it runs ('godwit up') and that the kubeconfig is for it`,
      { cause: error },
    );
  if (!(error instanceof ApiError)) return error;
  const message = error.message.replace(WEBHOOK, '').replace(/\.$/, '');
  const fix = fixOf(error.code);
  if (error.code === 401)
    return new UserError(
      `the API server at ${server} does not know who you are; give the kubeconfig of a user it knows`,
      { cause: error },
    );
  return new UserError(fix === '' ? message : `${message}; ${fix}`, { cause: error });
}

function fixOf(code: number): string {
  if (code === 403) return 'ask whoever manages the cluster for that right, or choose another user with --context';
  if (code === 404) return "'godwit status' shows all there is, and -n chooses the namespace";
  if (code === 400 || code === 422) return 'put that right, and try again';
  if (code === 409) return "'godwit status' shows how it is now: try again if it is still to be done";
  if (code === 429 || code === 503 || code === 504) return 'try again in a moment';
  if (code === 500) return 'try again, and look at the log of the API server if it stays so';
  return '';
}

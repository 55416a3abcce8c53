import { describe, expect, it } from 'vitest';
import { ApiError } from '../api/status.ts';
import { TransportError } from '../kube/transport.ts';
import { apiFailure } from './api-failure.ts';
import { UserError } from './failure.ts';

describe('what a server answers is told in a sentence with what to do', () => {
  it.each<[string, Error, string]>([
    [
      'nobody there',
      new TransportError('connection refused'),
      'cannot talk to the API server at https://x (connection refused); see that it runs',
    ],
    ['a stranger', new ApiError(401, 'Unauthorized', 'Unauthorized'), 'does not know who you are; give the kubeconfig'],
    [
      'no right',
      new ApiError(403, 'Forbidden', 'jane cannot do that.'),
      'jane cannot do that; ask whoever manages the cluster',
    ],
    [
      'no such thing',
      new ApiError(404, 'NotFound', 'vm "a" not found'),
      'vm "a" not found; \'godwit status\' shows all there is',
    ],
    ['too much', new ApiError(429, 'TooManyRequests', 'slow down'), 'slow down; try again in a moment'],
    ['not now', new ApiError(503, 'ServiceUnavailable', 'no'), 'no; try again in a moment'],
    [
      'a webhook',
      new ApiError(422, 'Invalid', 'admission webhook "x.y" denied the request: spec.a: wrong.'),
      'spec.a: wrong; put that right, and try again',
    ],
    ['nonsense', new ApiError(400, 'BadRequest', 'no'), 'no; put that right, and try again'],
    ['a quarrel', new ApiError(409, 'Conflict', 'no.'), "no; 'godwit status' shows how it is now: try again"],
    ['a fault', new ApiError(500, 'InternalError', 'no'), 'no; try again, and look at the log of the API server'],
    ['a wait', new ApiError(504, 'Timeout', 'no'), 'no; try again in a moment'],
  ])('%s', (_, error, text) => {
    const told = apiFailure(error, 'https://x');
    expect(told).toBeInstanceOf(UserError);
    expect((told as UserError).message).toContain(text);
    expect((told as UserError).cause).toBe(error);
  });

  it('and what is a bug stays one', () => {
    const bug = new TypeError('oops');
    expect(apiFailure(bug, '')).toBe(bug);
  });
});

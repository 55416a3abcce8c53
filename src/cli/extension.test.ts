import { expect, it } from 'vitest';
import { realEnv } from '../env/real.ts';
import { extension } from './extension.ts';
import { UserError } from './failure.ts';

it.each(['0.0.0.0', '::'])('an extension that listens at %s has to be reached by a Service', async (host) => {
  const started = extension({ listen: { host, port: 8443 } }, realEnv('error'), () => undefined);
  const error: unknown = await started.catch((failure: unknown) => failure);
  expect(error).toBeInstanceOf(UserError);
  expect(error).toMatchObject({ exitCode: 2, message: expect.stringContaining(`${host}: give --listen an address`) });
});

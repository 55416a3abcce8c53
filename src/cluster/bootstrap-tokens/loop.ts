import { BOOTSTRAP_TOKEN_NAMESPACE, BOOTSTRAP_TOKEN_TYPE } from '../../api/bootstrap-token.ts';
import { type ClusterLoop, controllerIdentity } from '../loop.ts';
import { secrets } from '../resources.ts';
import { TokenCleaner } from './token-cleaner.ts';

/** Removes the tokens of machines that were to join, when their time is over. */
export const tokenCleanerLoop: ClusterLoop = {
  name: 'token-cleaner-controller',
  identity: controllerIdentity('token-cleaner'),
  component: 'token-cleaner',
  make: ({ informers, ...context }) =>
    new TokenCleaner({
      ...context,
      tokens: informers.of(
        secrets,
        {},
        {
          namespace: BOOTSTRAP_TOKEN_NAMESPACE,
          fieldSelector: `type=${BOOTSTRAP_TOKEN_TYPE}`,
        },
      ),
    }),
};

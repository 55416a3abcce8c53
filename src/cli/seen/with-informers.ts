import { type Env, sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { SharedInformers } from '../../kube/shared-informers.ts';
import { UserError } from '../failure.ts';

/** How long it may take to look at a cluster. */
const LOOK_MS_MAX = 60_000;

/** Looks at the cluster as controllers do, once all that was asked for is there. Rejects where that takes too long. */
export async function withInformers<T>(
  { client, env, timeoutMs = LOOK_MS_MAX }: { readonly client: Client; readonly env: Env; readonly timeoutMs?: number },
  prepare: (informers: SharedInformers) => () => T,
): Promise<T> {
  const informers = new SharedInformers({ client, env });
  const look = prepare(informers);
  const ended = new AbortController();
  const following = informers.all().map((informer) => informer.run(ended.signal));
  try {
    const late = sleep(env.clock, timeoutMs, ended.signal).then(() => {
      throw new UserError('the cluster could not be looked at in time; see that you may list all that is in it');
    });
    await Promise.race([Promise.all(informers.all().map(({ synced }) => synced)), late, Promise.race(following)]);
    return look();
  } finally {
    ended.abort();
    await Promise.allSettled(following);
  }
}

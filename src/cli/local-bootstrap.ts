import { parse, stringify } from 'yaml';
import type { Random } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import type { KubeObject } from '../api/meta.ts';
import { ObjectApplier } from '../kube/apply-objects.ts';

/** What the nodes of this machine join with: a bootstrap token like that of any other machine, made anew for each start. */

const TOKEN_ID = 'godwit';
const SECRET_BYTES = 8;

/** Makes the token, and a kubeconfig with it from an admin's. */
export async function localBootstrap(
  client: Client,
  random: Random,
  adminKubeconfig: string,
  signal: AbortSignal,
): Promise<string> {
  const secret = Buffer.from(random.bytes(SECRET_BYTES)).toString('hex');
  const object: KubeObject = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: `bootstrap-token-${TOKEN_ID}`, namespace: 'kube-system' },
    type: 'bootstrap.kubernetes.io/token',
    data: Object.fromEntries(
      Object.entries({
        'token-id': TOKEN_ID,
        'token-secret': secret,
        'usage-bootstrap-authentication': 'true',
        description: 'for the nodes that godwit up starts',
      }).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    ),
  };
  await (await ObjectApplier.of(client, signal)).apply([object], signal);
  const config = parse(adminKubeconfig) as { users: { name: string; user: object }[] };
  const users = config.users.map(({ name }) => ({ name, user: { token: `${TOKEN_ID}.${secret}` } }));
  return stringify({ ...config, users });
}

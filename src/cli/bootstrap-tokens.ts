import { X509Certificate } from 'node:crypto';
import {
  BOOTSTRAP_TOKEN,
  BOOTSTRAP_TOKEN_NAMESPACE,
  BOOTSTRAP_TOKEN_TYPE,
  bootstrapTokenEndMs,
  bootstrapTokenSecretName,
} from '../api/bootstrap-token.ts';
import { humanDuration } from '../api/human-duration.ts';
import { formatTime, type KubeObject } from '../api/meta.ts';
import { ApiError } from '../api/status.ts';
import type { Env, Random } from '../env/ports.ts';
import type { ClusterAccess } from '../kube/cluster-access.ts';
import type { Resource } from '../kube/resource.ts';
import { fingerprintOf } from '../node/identity/pinned-authority.ts';
import { type ClusterOptions, withCluster } from './cluster-connection.ts';
import type { OutputFormat } from './cluster-options.ts';
import { UserError } from './failure.ts';
import { printValue } from './print-value.ts';
import { table } from './table.ts';

/** What `godwit token` does. */

export interface TokenCommandOptions extends ClusterOptions {
  /** Of list and create. */
  readonly output?: OutputFormat;
}

/** Of create. */
export interface NewTokenOptions extends TokenCommandOptions {
  /** How long it can be used, in milliseconds; for ever where it is 0. */
  readonly ttl: number;
  readonly description?: string;
  /** Where the machine that joins finds the API server, if not where we do. */
  readonly joinServer?: string;
}

interface Secret extends KubeObject {
  type?: string;
  data?: Record<string, string>;
  stringData?: Record<string, string>;
}

const secrets: Resource<Secret> = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true };

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz0123456789';
/** Who joins with a token of ours. Not kubeadm's group: what its tokens may do on a cluster is for its admin to say. */
export const TOKEN_GROUP = 'system:bootstrappers:godwit';

type Print = (line: string) => void;

/** Makes a token that ends by itself, and tells how a machine joins with it. */
export async function createToken(options: NewTokenOptions, env: Env, print: Print): Promise<void> {
  await withCluster(options, env, async ({ client, access }) => {
    const caHash = await authorityHash(access);
    const [id, secret] = [word(env.random, 6), word(env.random, 16)];
    const expiration = options.ttl > 0 ? formatTime(env.clock.now() + options.ttl) : undefined;
    const object: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: bootstrapTokenSecretName(id), namespace: BOOTSTRAP_TOKEN_NAMESPACE },
      type: BOOTSTRAP_TOKEN_TYPE,
      stringData: {
        'token-id': id,
        'token-secret': secret,
        'usage-bootstrap-authentication': 'true',
        'auth-extra-groups': TOKEN_GROUP,
        ...(expiration === undefined ? {} : { expiration }),
        ...(options.description === undefined ? {} : { description: options.description }),
      },
    };
    await client.create(secrets, object, signal);
    const server = options.joinServer ?? access.server;
    const token = `${id}.${secret}`;
    const isLocal = LOOPBACK.has(new URL(server).hostname);
    // By what the API server reaches the node in turn, for consoles and logs.
    const address = isLocal ? '' : " --address $(hostname -I | cut -d' ' -f1)";
    const command = `godwit agent --name $(hostname)${address} --server ${server} --token ${token} --ca-hash ${caHash}`;
    const { description, output } = options;
    if (printValue({ token, expiration, description, server, caHash, command }, output, print)) return;
    print(`To join a machine as a node, run this on it${expiration === undefined ? '' : ` (until ${expiration})`}:`);
    print('');
    print(`  ${command}`);
    if (isLocal) {
      print('');
      print(
        `Only this machine can reach ${server}: for others start 'godwit up --listen ADDRESS:PORT', or give --server.`,
      );
    }
  });
}

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);

/** Shows every token, the one that ends first on top. */
export async function listTokens(options: TokenCommandOptions, env: Env, print: Print): Promise<void> {
  await withCluster(options, env, async ({ client }) => {
    const selection = { namespace: BOOTSTRAP_TOKEN_NAMESPACE, fieldSelector: `type=${BOOTSTRAP_TOKEN_TYPE}` };
    const { items } = await client.list(secrets, selection, signal);
    const nowMs = env.clock.now();
    const tokens = items
      .map((secret) => ({ secret, endMs: bootstrapTokenEndMs(dataOf(secret, 'expiration')) }))
      .sort((a, b) => (a.endMs === b.endMs ? 0 : a.endMs - b.endMs))
      .map(({ secret, endMs }) => ({
        token: `${dataOf(secret, 'token-id')}.${dataOf(secret, 'token-secret')}`,
        endsIn: leftOf(endMs - nowMs),
        expiration: dataOf(secret, 'expiration') || undefined,
        description: dataOf(secret, 'description') || undefined,
        groups: dataOf(secret, 'auth-extra-groups'),
      }));
    if (printValue(tokens, options.output, print)) return;
    const isWide = options.output === 'wide';
    const rows = tokens.map(({ token, endsIn, description = '<none>', expiration = '<never>', groups }) => [
      token,
      endsIn,
      description,
      ...(isWide ? [expiration, groups] : []),
    ]);
    const head = ['TOKEN', 'ENDS IN', 'DESCRIPTION', ...(isWide ? ['ENDS AT', 'GROUPS'] : [])];
    for (const line of table([head, ...rows])) print(line);
  });
}

/** Deletes a token, by all of it or by its id. */
export async function deleteToken(text: string, options: TokenCommandOptions, env: Env, print: Print): Promise<void> {
  const id = BOOTSTRAP_TOKEN.exec(text)?.[1] ?? text;
  if (!/^[a-z0-9]{6}$/.test(id))
    throw new UserError(`${text} is no token: give all of it, or its first six characters`, { exitCode: 2 });
  await withCluster(options, env, async ({ client }) => {
    try {
      await client.delete(secrets, BOOTSTRAP_TOKEN_NAMESPACE, bootstrapTokenSecretName(id), signal);
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 404)) throw error;
      throw new UserError(`there is no token ${id}; see 'godwit token list'`, { cause: error });
    }
    print(`Deleted the token ${id}.`);
  });
}

/** A command ends with its process. */
const { signal } = new AbortController();

async function authorityHash(access: ClusterAccess): Promise<string> {
  const pem = await access.authorities();
  if (pem === undefined)
    throw new UserError('the kubeconfig does not say which authority the API server has, so nobody could check it');
  return fingerprintOf(new X509Certificate(pem));
}

/** Letters and digits, all equally likely. */
function word(random: Random, length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of random.bytes(length)) {
      // What is left over at the end of the range would favour the first letters.
      if (byte < 256 - (256 % ALPHABET.length) && text.length < length) text += ALPHABET[byte % ALPHABET.length];
    }
  }
  return text;
}

function leftOf(leftMs: number): string {
  if (leftMs === Number.POSITIVE_INFINITY) return '<never>';
  return leftMs <= 0 ? '<ended>' : humanDuration(leftMs);
}

function dataOf(secret: Secret, key: string): string {
  return Buffer.from(secret.data?.[key] ?? '', 'base64').toString('utf8');
}

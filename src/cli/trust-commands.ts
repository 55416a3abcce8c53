import { open } from 'node:fs/promises';
import { errorMessage } from '../api/error-message.ts';
import { humanDuration } from '../api/human-duration.ts';
import type { Env } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import {
  importTrust,
  type Imported,
  listTrust,
  ownTrust,
  type PeerDescription,
  revokeTrust,
  TrustError,
} from '../sync/trust/administration.ts';
import { DOCUMENT_BYTES_MAX, formatDocument, parseDocument, type TrustDocument } from '../sync/trust/document.ts';
import { type ClusterOptions, withCluster } from './cluster-connection.ts';
import type { OutputFormat } from './cluster-options.ts';
import { UserError } from './failure.ts';
import { printValue } from './print-value.ts';
import { table } from './table.ts';

/** What `godwit trust` does. */

export type TrustCommandOptions = ClusterOptions;

type Print = (line: string) => void;

/** Prints what other clusters have to import. */
export async function exportTrust(
  options: TrustCommandOptions & { readonly name?: string },
  env: Env,
  print: Print,
): Promise<void> {
  await onCluster(options, env, async (client) => {
    print(formatDocument(await ownTrust(client, options.name, signal)).trimEnd());
  });
}

const DONE: { readonly [outcome in Imported['outcome']]: string } = {
  new: 'is trusted now',
  renewed: 'was trusted already; its authorities are those of the file now',
  restored: 'is trusted again: its revocation is withdrawn',
};

/** Trusts the cluster that a file is of. */
export async function importTrustFile(
  file: string,
  options: TrustCommandOptions & { readonly name?: string },
  env: Env,
  print: Print,
): Promise<void> {
  const document = await documentIn(file);
  const { name } = options;
  await onCluster(options, env, async (client) => {
    const { peer, outcome } = await importTrust(client, { document, name, nowMs: env.clock.now() }, signal);
    print(`The cluster ${peer.name} (${peer.clusterId}) ${DONE[outcome]}.`);
    for (const { fingerprint256 } of peer.authorities) print(`Fingerprint (SHA-256): ${fingerprint256}`);
    if (outcome === 'new')
      print('It has to trust this one as well: import there what `godwit trust export` prints here.');
  });
}

/** Shows whom this cluster trusts. */
export async function printTrust(
  options: TrustCommandOptions & { readonly output?: OutputFormat },
  env: Env,
  print: Print,
): Promise<void> {
  await onCluster(options, env, async (client) => {
    const peers = await listTrust(client, env.clock.now(), signal);
    if (printValue(peers, options.output, print)) return;
    if (peers.length === 0) return print("No cluster is trusted; see 'godwit trust import --help'.");
    const isWide = options.output === 'wide';
    const head = ['NAME', 'CLUSTER', 'STATE', 'ENDS IN', ...(isWide ? ['FINGERPRINTS (SHA-256)'] : [])];
    for (const line of table([head, ...peers.map((peer) => rowOf(peer, env, isWide))])) print(line);
    for (const { clusterId, message } of peers) if (message !== undefined) print(`${clusterId}: ${message}`);
  });
}

function rowOf(
  { name, clusterId, state, validUntil, fingerprints }: PeerDescription,
  { clock }: Env,
  isWide: boolean,
): string[] {
  const leftMs = validUntil === undefined ? 0 : Date.parse(validUntil) - clock.now();
  const row = [name || '<none>', clusterId, state, leftMs > 0 ? humanDuration(leftMs) : '<ended>'];
  return isWide ? [...row, fingerprints.join(',')] : row;
}

/** Takes trust in a cluster back. */
export async function revokeTrustIn(name: string, options: TrustCommandOptions, env: Env, print: Print): Promise<void> {
  await onCluster(options, env, async (client) => {
    const { peer, wasRevoked } = await revokeTrust(client, name, env.clock.now(), signal);
    print(
      wasRevoked
        ? `The trust in ${peer.name} was revoked at ${peer.revoked}.`
        : `Nothing new begins with ${peer.name} (${peer.clusterId}) from now on.`,
    );
    print("It stays in 'godwit trust list' until no guest is on its way to or from it.");
  });
}

async function documentIn(file: string): Promise<TrustDocument> {
  const name = file === '-' ? 'standard input' : file;
  let bytes: Uint8Array;
  try {
    bytes = await firstBytes(file);
  } catch (error) {
    throw new UserError(`cannot read ${name}: ${errorMessage(error)}`, { cause: error });
  }
  try {
    return parseDocument(bytes);
  } catch (error) {
    throw new UserError(`${name} cannot be imported: ${errorMessage(error)}`, { cause: error });
  }
}

/** As much of a file as can be of use, and a byte more. */
async function firstBytes(file: string): Promise<Uint8Array> {
  const handle = await open(file === '-' ? '/dev/stdin' : file);
  try {
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of handle.createReadStream({ autoClose: false })) {
      chunks.push(chunk as Buffer);
      length += (chunk as Buffer).length;
      if (length > DOCUMENT_BYTES_MAX) break;
    }
    return Buffer.concat(chunks);
  } finally {
    await handle.close();
  }
}

/** A command ends with its process. */
const { signal } = new AbortController();

function onCluster(options: TrustCommandOptions, env: Env, run: (client: Client) => Promise<void>): Promise<void> {
  return withCluster(options, env, async ({ client }) => {
    try {
      await run(client);
    } catch (error) {
      throw error instanceof TrustError ? new UserError(error.message, { cause: error }) : error;
    }
  });
}

import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import type { Env } from '../env/ports.ts';
import { HttpsWebhookTransport } from './admission/webhooks/https-transport.ts';
import { HttpsBackendTransport } from './aggregation/https-backend.ts';
import { ApiServerCore } from './core.ts';
import type { ApiRequest, ApiResponse } from './http/message.ts';
import { HttpServer } from './http/server.ts';
import { AuditLog } from './observability/audit.ts';
import { AuditFile } from './observability/audit-file.ts';
import { certificateEnds, loadOrCreatePki } from './pki/cluster-pki.ts';
import { kubeconfigFor } from './pki/kubeconfig.ts';
import { openLmdbEngine } from './storage/lmdb-engine.ts';
import type { StorageError } from './storage/port.ts';
import { Store } from './storage/store.ts';

/** The API server as a process runs it: LMDB below, TLS above. */

export interface ApiServerOptions {
  readonly env: Env;
  /** Where data and keys are kept. The caller holds it exclusively. */
  readonly directory: string;
  readonly host: string;
  readonly port: number;
  /** Where audit events go; none are written without it. */
  readonly auditLog?: string;
  /** What others in this process count; see CoreOptions. */
  readonly moreMetrics?: () => Promise<string>;
  /** Whether the cluster's own loops run beside it; see CoreOptions. */
  readonly hasDefaultAccounts?: boolean;
}

export interface ApiServer {
  readonly url: string;
  readonly port: number;
  /** An admin's kubeconfig; secret. */
  readonly kubeconfig: string;
  /** What it shows to others, or signs with, and when each of these ends. */
  readonly certificates: readonly (readonly [certificate: string, endsMs: number])[];
  /** Answers a request of this very process, whose certificate is taken for verified; never rejects. */
  readonly handle: (request: ApiRequest) => Promise<ApiResponse>;
  /** Resolves, with the reason, when the storage has failed and the process has to end. */
  readonly failed: Promise<StorageError>;
  /** Ends watches, finishes requests, and closes the store. */
  stop(): Promise<void>;
}

/** What tokens name as their issuer: stable, whatever address is served. */
const ISSUER = 'https://kubernetes.default.svc.cluster.local';

/** Starts serving. Rejects with the system's error when it cannot listen. */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const { env, directory, host, port } = options;
  let fail: (error: StorageError) => void = () => undefined;
  const failed = new Promise<StorageError>((resolve) => (fail = resolve));
  const pki = await loadOrCreatePki(join(directory, 'pki'), env, hostsOf(host));
  const store = await Store.open(await openLmdbEngine(join(directory, 'data')), { clock: env.clock, onFatal: fail });
  const webhookTransport = new HttpsWebhookTransport(env.clock);
  const backendTransport = new HttpsBackendTransport(env.clock, () => pki.frontProxyClient);
  const nodeTransport = new HttpsBackendTransport(env.clock, () => pki.nodeClient);
  const audit = options.auditLog === undefined ? undefined : new AuditLog(env, new AuditFile(options.auditLog));
  const core = new ApiServerCore({
    env,
    store,
    pki,
    issuer: ISSUER,
    webhookTransport,
    backendTransport,
    nodeTransport,
    ...(audit ? { audit } : {}),
    ...(options.moreMetrics ? { moreMetrics: options.moreMetrics } : {}),
    hasDefaultAccounts: options.hasDefaultAccounts ?? false,
  });
  const http = new HttpServer({
    host,
    port,
    // With its authority: a machine that is to join knows that one by its fingerprint, and takes it from here.
    certificate: pki.server.certificatePem + pki.clusterAuthority.certificatePem,
    key: pki.server.keyPem,
    clientAuthorities: [pki.clusterAuthority.certificatePem],
    clock: env.clock,
    log: env.log,
    handle: (request) => core.handle(request),
    upgrade: (request, socket, head) => core.upgrade(request, socket, head),
  });
  const close = async (): Promise<void> => {
    await core.stop();
    webhookTransport.close();
    backendTransport.close();
    nodeTransport.close();
    await store.close();
    await audit?.stop();
  };
  try {
    await core.start();
    const actualPort = await http.listen();
    const url = `https://${urlHost(host)}:${actualPort}`;
    return {
      url,
      port: actualPort,
      kubeconfig: kubeconfigFor(pki, url),
      certificates: certificateEnds(pki),
      handle: (request) => core.handle(request),
      failed,
      stop: async () => {
        await http.stop();
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A wildcard address cannot be dialled; whoever reads the kubeconfig on this machine can use loopback. */
function urlHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return isIP(host) === 6 ? `[${host}]` : host;
}

/** Every name that the certificate has to carry: for a wildcard, all addresses that this machine has. */
function hostsOf(host: string): string[] {
  if (host !== '0.0.0.0' && host !== '::') return [host];
  return Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).map(({ address }) => address));
}

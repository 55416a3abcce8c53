import { createClient, type Transport } from '@connectrpc/connect';
import { createGrpcTransport } from '@connectrpc/connect-node';
import type { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { errorMessage } from '../../api/error-message.ts';
import type { Clock } from '../../env/ports.ts';
import { SyncError, UnprovenError } from '../channel.ts';
import { type Address, parseAddress } from './address.ts';
import { FRAME_BYTES_MAX } from './frame.ts';
import type { Link, Network } from './link.ts';
import { synchronizationService } from './schema.ts';
import { type ProvenPeer, StreamLink } from './stream-link.ts';
import { tlsOptions, type TlsTrust } from './tls.ts';

/** Until a connection stands, with TLS. */
const CONNECT_MS = 10_000;

/** Reaches other clusters over the network: gRPC, over HTTP/2, over mutual TLS. */
export class GrpcNetwork implements Network {
  readonly #clock: Clock;
  readonly #trust: TlsTrust;

  constructor({ clock, trust }: { readonly clock: Clock; readonly trust: TlsTrust }) {
    this.#clock = clock;
    this.#trust = trust;
  }

  async connect(connectURL: string, signal: AbortSignal): Promise<Link> {
    const address = parseAddress(connectURL);
    const socket = await this.#connected(address, signal);
    try {
      return this.#linkOver(socket, address);
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  #connected(address: Address, signal: AbortSignal): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const socket = connect({
        ...tlsOptions(this.#trust.material()),
        host: address.host,
        port: address.port,
        ALPNProtocols: ['h2'],
        // Addresses are whatever leads to a cluster; who it is, its certificate says.
        checkServerIdentity: () => undefined,
        ...(isIP(address.host) === 0 ? { servername: address.host } : {}),
      });
      const fail = (error: SyncError): void => {
        settle();
        socket.destroy();
        reject(error);
      };
      const timer = this.#clock.setTimer(
        () =>
          fail(
            new UnprovenError('Unreachable', `${address.authority} did not answer within ${CONNECT_MS / 1000} seconds`),
          ),
        CONNECT_MS,
      );
      const onAbort = (): void => fail(new SyncError('Closed', 'the address is not wanted any more'));
      const settle = (): void => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      // It stays, so that an error after the end is nobody's problem; whoever uses the socket hears of it as well.
      socket.on('error', (error: NodeJS.ErrnoException) => fail(connectFailure(error, address)));
      socket.once('secureConnect', () => {
        settle();
        resolve(socket);
      });
      if (signal.aborted) onAbort();
    });
  }

  #linkOver(socket: TLSSocket, { authority }: Address): Link {
    const certificate = socket.getPeerX509Certificate();
    if (!certificate) throw new UnprovenError('NotTrusted', `${authority} shows no certificate`);
    if (socket.alpnProtocol !== 'h2') throw new UnprovenError('Unreachable', `${authority} does not speak HTTP/2`);
    const peer = this.#identified(certificate);
    if (peer.clusterId === this.#trust.clusterId)
      throw new SyncError('OwnCluster', `${authority} leads back to this cluster`);
    const ended = new AbortController();
    const destroy = (): void => {
      ended.abort();
      socket.destroy();
    };
    const client = createClient(synchronizationService, transportOver(socket, authority));
    const link = new StreamLink({
      clock: this.#clock,
      peer,
      check: () => void this.#trust.identify(certificate),
      incoming: (outgoing) => client.converse(outgoing, { signal: ended.signal }),
      destroy,
    });
    // One connection is for one stream.
    void link.ended.then(destroy);
    return link;
  }

  #identified(certificate: X509Certificate): ProvenPeer {
    try {
      return this.#trust.identify(certificate);
    } catch (error) {
      throw new UnprovenError('NotTrusted', errorMessage(error), error);
    }
  }
}

/** Calls over a socket that stands; when it breaks, there is no other. */
function transportOver(socket: TLSSocket, authority: string): Transport {
  let isTaken = false;
  return createGrpcTransport({
    baseUrl: `https://${authority}`,
    readMaxBytes: FRAME_BYTES_MAX,
    writeMaxBytes: FRAME_BYTES_MAX,
    acceptCompression: [],
    binaryOptions: { readUnknownFields: false },
    nodeOptions: {
      settings: { enablePush: false },
      createConnection: () => {
        if (isTaken) throw new SyncError('Disconnected', 'the connection is no more');
        isTaken = true;
        return socket;
      },
    },
  });
}

/** Errors of OpenSSL that mean that the other side's certificate is not good enough. */
const UNTRUSTED: ReadonlySet<string> = new Set([
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'INVALID_PURPOSE',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

function connectFailure(error: NodeJS.ErrnoException, { authority }: Address): SyncError {
  const code = error.code ?? '';
  if (code === 'CERT_HAS_EXPIRED')
    return new UnprovenError('NotTrusted', `the certificate of the cluster at ${authority} has expired`, error);
  if (UNTRUSTED.has(code))
    return new UnprovenError(
      'NotTrusted',
      `no trusted cluster has issued the certificate that ${authority} shows (${code}); 'godwit trust import' what 'godwit trust export' prints there`,
      error,
    );
  return new UnprovenError('Unreachable', `cannot connect to ${authority}: ${error.message}`, error);
}

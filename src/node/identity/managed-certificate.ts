import { type Env, sleep } from '../../env/ports.ts';
import { Backoff } from '../../kube/backoff.ts';
import type { Client } from '../../kube/client.ts';
import { errorText } from '../../kube/error-text.ts';
import type { Service } from '../../kube/service.ts';
import { generateKeyPem } from '../../machinery/x509/authority.ts';
import { type CertificateFile, type NodeCertificate, parseCertificate } from './certificate-file.ts';
import { CertificateRefused, signedCertificate } from './certificate-signing.ts';
import { type CertificateWish, isWished } from './certificate-wish.ts';
import { isExpiredAt, renewAtMs } from './renewal.ts';

export interface ManagedCertificateOptions {
  readonly env: Env;
  /** Names it in logs. */
  readonly name: string;
  readonly file: CertificateFile;
  readonly wish: CertificateWish;
  /** Asks for the next one. */
  readonly client: () => Client;
  /** Nothing is asked for before this. */
  readonly after?: Promise<void>;
}

/** Tells of a certificate that follows one which is good until then; resolves when it may be shown. */
type Announce = (certificatePem: string, untilMs: number, signal: AbortSignal) => Promise<void>;

/** Wall clocks are set: nobody sleeps for months on the word of one. */
const SLEEP_MS_MAX = 3_600_000;
const BACKOFF = { baseMs: 2_000, maxMs: 5 * 60_000 };

/**
 * A certificate that is renewed long before it ends, while the process runs: whoever uses `current` when it connects
 * needs nothing else.
 */
export class ManagedCertificate implements Service {
  readonly name: string;
  readonly needsLeadership = false;
  readonly #options: ManagedCertificateOptions;
  readonly #listeners: (() => void)[] = [];
  #announce: Announce = async () => undefined;
  #current: NodeCertificate | undefined;
  #renewAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: ManagedCertificateOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** The certificate to use now; undefined while there is none. */
  get current(): NodeCertificate | undefined {
    return this.#current;
  }

  /** Calls back whenever there is another one. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Has the next one told of, before it is taken up in the place of one that is still good. */
  beforeChange(announce: Announce): void {
    this.#announce = announce;
  }

  /** Takes up what is on disk, if that is still good. */
  async load(): Promise<NodeCertificate | undefined> {
    const { env, file, wish } = this.#options;
    const stored = await file.read();
    if (stored && isWished(stored, wish) && !isExpiredAt(stored, env.clock.now())) this.#use(stored);
    return this.#current;
  }

  /** Asks for another one by the given client, waits for it, and takes it up. Rejects where it is refused. */
  async renew(client: Client, signal: AbortSignal): Promise<void> {
    const { env, file, wish } = this.#options;
    let keyPem = await file.pendingKey();
    if (keyPem === undefined) {
      keyPem = await generateKeyPem();
      await file.writePendingKey(keyPem);
    }
    try {
      const certificatePem = await signedCertificate(env, client, wish, keyPem, signal);
      const next = parseCertificate(certificatePem + keyPem);
      if (!next) throw new Error('what was signed is no certificate');
      await file.write(next);
      if (this.#current) await this.#announce(next.certificatePem, this.#current.notAfterMs, signal);
      this.#use(next);
      const until = new Date(next.notAfterMs).toISOString();
      env.log.info('got a certificate', { certificate: this.name, until });
    } catch (error) {
      // The same key would get the same answer.
      if (error instanceof CertificateRefused) await file.forgetPendingKey();
      throw error;
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    const { env, client, after } = this.#options;
    const backoff = new Backoff(env.random, BACKOFF);
    await untilEither(after, signal);
    while (!signal.aborted) {
      let waitMs = Math.min(SLEEP_MS_MAX, this.#renewAtMs - env.clock.now());
      if (waitMs <= 0) {
        try {
          await this.renew(client(), signal);
          backoff.reset();
          continue;
        } catch (error) {
          waitMs = backoff.next();
          if (!signal.aborted) this.#complain(error);
        }
      }
      await sleep(env.clock, waitMs, signal);
    }
  }

  #use(certificate: NodeCertificate): void {
    this.#current = certificate;
    this.#renewAtMs = renewAtMs(certificate, this.#options.env.random.number());
    for (const listener of this.#listeners) listener();
  }

  #complain(error: unknown): void {
    const { log } = this.#options.env;
    const ends = this.#current && new Date(this.#current.notAfterMs).toISOString();
    log.warn('cannot get a certificate', { certificate: this.name, ends, error: errorText(error) });
  }
}

async function untilEither(promise: Promise<void> | undefined, signal: AbortSignal): Promise<void> {
  if (!promise) return;
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
    void promise.then(resolve);
  });
}

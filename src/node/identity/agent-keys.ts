import { X509Certificate } from 'node:crypto';
import { type Clock, sleep } from '../../env/ports.ts';
import { keyPin } from './key-pin.ts';
import { isExpiredAt } from './renewal.ts';

/** For so long a key is told of before it is shown: whoever migrates to or from here meanwhile has heard of it then. */
const TOLD_BEFORE_MS = 30_000;

/**
 * By which keys this agent is known to those elsewhere who trust nobody to vouch for it: those of the certificates that it
 * shows, as a client and as a server, of those that it is about to show, and of those that it has shown on connections
 * which may be open still.
 */
export class AgentKeys {
  readonly #clock: Clock;
  readonly #tell: () => void;
  /** Until when each is good; the newest is the last. */
  readonly #notAfterMs = new Map<string, number>();

  /** `tell` is called whenever there is another one. */
  constructor(clock: Clock, tell: () => void) {
    this.#clock = clock;
    this.#tell = tell;
  }

  /** All of them, the newest first. */
  get pins(): readonly string[] {
    const nowMs = this.#clock.now();
    for (const [pin, notAfterMs] of this.#notAfterMs)
      if (isExpiredAt({ notAfterMs }, nowMs)) this.#notAfterMs.delete(pin);
    return [...this.#notAfterMs.keys()].reverse();
  }

  /** This one is shown from now on; nothing where there is none. */
  note(certificatePem: string | undefined): void {
    if (certificatePem === undefined) return;
    const certificate = new X509Certificate(certificatePem);
    const pin = keyPin(certificate);
    if (this.#notAfterMs.has(pin)) return;
    this.#notAfterMs.set(pin, Date.parse(certificate.validTo));
    this.#tell();
  }

  /** This one is to be shown in the place of another, which is good until then: resolves when it may be. */
  async announce(certificatePem: string, untilMs: number, signal: AbortSignal): Promise<void> {
    this.note(certificatePem);
    const leftMs = untilMs - this.#clock.now();
    await sleep(this.#clock, Math.max(0, Math.min(TOLD_BEFORE_MS, leftMs / 2)), signal);
  }
}

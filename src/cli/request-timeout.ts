import type { Clock } from '../env/ports.ts';
import { type Transport, TransportError, type TransportRequest, type TransportResponse } from '../kube/transport.ts';

/** A transport that gives up on requests to which no answer has begun in time. What is answered may go on, as watches do. */
export class HurriedTransport implements Transport {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #timeoutMs: number;

  constructor(transport: Transport, clock: Clock, timeoutMs: number) {
    this.#transport = transport;
    this.#clock = clock;
    this.#timeoutMs = timeoutMs;
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    const late = new AbortController();
    const timer = this.#clock.setTimer(() => late.abort(), this.#timeoutMs);
    try {
      return await this.#transport.send({ ...request, signal: AbortSignal.any([request.signal, late.signal]) });
    } catch (error) {
      if (!late.signal.aborted || request.signal.aborted) throw error;
      throw new TransportError(`no answer within the ${this.#timeoutMs / 1000} s of --request-timeout`, error);
    } finally {
      timer.cancel();
    }
  }

  close(): void {
    this.#transport.close();
  }
}

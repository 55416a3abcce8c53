import type { RequestMetrics } from './metrics.ts';
import { shapeOfRequest } from './request-shape.ts';
import type { SteadyTime } from './steady-time.ts';
import type { Transport, TransportRequest, TransportResponse } from './transport.ts';

/** Counts what goes through another transport. As in client-go, the time that watches take is not told. */
export class MeteredTransport implements Transport {
  readonly #inner: Transport;
  readonly #metrics: RequestMetrics;
  readonly #time: SteadyTime;

  constructor(inner: Transport, metrics: RequestMetrics, time: SteadyTime) {
    this.#inner = inner;
    this.#metrics = metrics;
    this.#time = time;
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    const startMs = this.#time.now();
    let status: number | undefined;
    try {
      const response = await this.#inner.send(request);
      ({ status } = response);
      return response;
    } finally {
      const shape = shapeOfRequest(request.method, request.path);
      this.#metrics.answered(request.method, shape, status);
      if (shape.verb !== 'WATCH') this.#metrics.took(shape, this.#time.now() - startMs);
    }
  }

  close(): void {
    this.#inner.close();
  }
}

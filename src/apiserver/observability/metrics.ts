import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Clock } from '../../env/ports.ts';
import type { WebhookObservation } from '../admission/webhooks/caller.ts';
import type { RequestInfo } from '../http/message.ts';

/**
 * What the server counts, under the names that kube-apiserver's dashboards know. A request costs a map look-up and a
 * few additions: the series of a combination of labels is looked up in prom-client only once.
 */

/** Where the number of stored objects comes from; asked only when somebody reads the metrics. */
export type ObjectCounts = () => Iterable<{ readonly bucket: string; readonly count: number }>;

/** A request under way. */
export interface RequestMeasurement {
  /** To be called once, with the status of the answer. */
  end(code: number): void;
}

const REQUEST_LABELS = ['verb', 'group', 'version', 'resource', 'subresource', 'scope'] as const;
const REQUEST_SECONDS_BUCKETS = [0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.5, 2, 3, 5, 8, 15, 30, 60];
const WEBHOOK_SECONDS_BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25];
/** Distinct combinations of labels; past it requests are counted together, so that no client can grow our memory. */
const SERIES_MAX = 20_000;

/** A map, since the verb of a path that is no resource is whatever method the client sent. */
const VERBS: ReadonlyMap<string, string> = new Map([
  ['get', 'GET'],
  ['head', 'GET'],
  ['list', 'LIST'],
  ['watch', 'WATCH'],
  ['create', 'POST'],
  ['post', 'POST'],
  ['update', 'PUT'],
  ['put', 'PUT'],
  ['patch', 'PATCH'],
  ['delete', 'DELETE'],
  ['deletecollection', 'DELETECOLLECTION'],
  ['connect', 'CONNECT'],
]);

interface Series {
  readonly labels: { readonly [label in (typeof REQUEST_LABELS)[number]]: string };
  readonly longRunning: Gauge.Internal<string>;
  readonly duration: Histogram.Internal<string>;
  readonly totals: Map<number, Counter.Internal>;
}

export class ApiServerMetrics {
  readonly #clock: Clock;
  /** Everything that is counted. */
  readonly registry = new Registry();
  readonly #requests: Counter;
  readonly #durations: Histogram;
  readonly #longRunning: Gauge;
  readonly #mutating: Gauge.Internal<string>;
  readonly #readOnly: Gauge.Internal<string>;
  readonly #webhookDurations: Histogram;
  readonly #webhookRequests: Counter;
  readonly #webhookRejections: Counter;
  readonly #webhookFailOpens: Counter;
  readonly #series = new Map<string, Series>();

  constructor(clock: Clock, objectCounts: ObjectCounts) {
    this.#clock = clock;
    this.#requests = this.#counter('apiserver_request_total', 'Requests by what was asked and the status answered.', [
      ...REQUEST_LABELS,
      'code',
    ]);
    this.#durations = this.#histogram(
      'apiserver_request_duration_seconds',
      'How long requests took, watches and other long ones aside.',
      [...REQUEST_LABELS],
      REQUEST_SECONDS_BUCKETS,
    );
    this.#longRunning = this.#gauge('apiserver_longrunning_requests', 'Watches, proxies and other long requests now.', [
      ...REQUEST_LABELS,
    ]);
    const inflight = this.#gauge(
      'apiserver_current_inflight_requests',
      'Requests being handled now, long ones aside.',
      ['request_kind'],
    );
    this.#mutating = inflight.labels('mutating');
    this.#readOnly = inflight.labels('readOnly');
    const webhook = ['name', 'type', 'operation'];
    this.#webhookDurations = this.#histogram(
      'apiserver_admission_webhook_admission_duration_seconds',
      'How long admission webhooks took.',
      [...webhook, 'rejected'],
      WEBHOOK_SECONDS_BUCKETS,
    );
    this.#webhookRequests = this.#counter('apiserver_admission_webhook_request_total', 'Calls of admission webhooks.', [
      ...webhook,
      'outcome',
      'rejected',
    ]);
    this.#webhookRejections = this.#counter(
      'apiserver_admission_webhook_rejection_count',
      'Requests that admission webhooks refused, or that failed with them.',
      [...webhook, 'error_type'],
    );
    this.#webhookFailOpens = this.#counter(
      'apiserver_admission_webhook_fail_open_count',
      'Requests let pass although a webhook failed.',
      ['name', 'type'],
    );
    this.#collectOnRead(objectCounts);
  }

  /** Notes that a request has begun. `isServed` tells whether its resource exists: labels are not for clients to make. */
  begin(info: RequestInfo, isServed: boolean, isLongRunning: boolean): RequestMeasurement {
    const series = this.#seriesOf(info, isServed);
    const startMs = this.#clock.now();
    const isRead = series.labels.verb === 'GET' || series.labels.verb === 'LIST' || series.labels.verb === 'WATCH';
    const underWay = isLongRunning ? series.longRunning : isRead ? this.#readOnly : this.#mutating;
    underWay.inc();
    return {
      end: (code) => {
        underWay.dec();
        this.#totalOf(series, code).inc();
        if (!isLongRunning) series.duration.observe((this.#clock.now() - startMs) / 1000);
      },
    };
  }

  /** Counts a call of an admission webhook. */
  webhookCalled(call: WebhookObservation): void {
    const { name, type, operation, outcome } = call;
    const isRejected = outcome === 'denied' || outcome === 'failed-closed';
    const rejected = String(isRejected);
    this.#webhookDurations.labels(name, type, operation, rejected).observe(call.durationMs / 1000);
    this.#webhookRequests.labels(name, type, operation, outcome, rejected).inc();
    if (outcome === 'failed-open') this.#webhookFailOpens.labels(name, type).inc();
    const errorType = outcome === 'denied' ? 'no_error' : 'calling_webhook_error';
    if (isRejected) this.#webhookRejections.labels(name, type, operation, errorType).inc();
  }

  /** Everything in Prometheus' text format. */
  render(): Promise<string> {
    return this.registry.metrics();
  }

  /** The media type of what `render` answers. */
  get contentType(): string {
    return this.registry.contentType;
  }

  #seriesOf(info: RequestInfo, isServed: boolean): Series {
    const verb = VERBS.get(info.verb) ?? 'OTHER';
    const key = isServed
      ? `${verb} ${info.group} ${info.version} ${info.resource} ${info.subresource} ${scopeOf(info)}`
      : verb;
    const known = this.#series.get(key);
    if (known) return known;
    const isFull = this.#series.size >= SERIES_MAX;
    if (isFull && isServed) return this.#seriesOf(info, false);
    const { group, version, resource, subresource } = info;
    const labels = isServed
      ? { verb, group, version, resource, subresource, scope: scopeOf(info) }
      : { verb, group: '', version: '', resource: '', subresource: '', scope: '' };
    const series: Series = {
      labels,
      longRunning: this.#longRunning.labels(labels),
      duration: this.#durations.labels(labels),
      totals: new Map(),
    };
    this.#series.set(key, series);
    return series;
  }

  #totalOf(series: Series, code: number): Counter.Internal {
    let total = series.totals.get(code);
    if (!total) {
      total = this.#requests.labels({ ...series.labels, code: String(code) });
      series.totals.set(code, total);
    }
    return total;
  }

  #collectOnRead(objectCounts: ObjectCounts): void {
    const objects: Gauge = new Gauge({
      name: 'apiserver_storage_objects',
      help: 'Objects stored, by resource.',
      labelNames: ['resource'],
      registers: [this.registry],
      collect: () => {
        objects.reset();
        for (const { bucket, count } of objectCounts()) objects.labels(bucket).set(count);
      },
    });
  }

  #counter(name: string, help: string, labelNames: string[]): Counter {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  #gauge(name: string, help: string, labelNames: string[]): Gauge {
    return new Gauge({ name, help, labelNames, registers: [this.registry] });
  }

  #histogram(name: string, help: string, labelNames: string[], buckets: number[]): Histogram {
    return new Histogram({ name, help, labelNames, buckets, registers: [this.registry] });
  }
}

/** How much of the cluster a request spans. */
function scopeOf(info: RequestInfo): string {
  if (!info.isResource) return '';
  if (info.name !== '' || info.verb === 'create') return 'resource';
  return info.namespace === '' ? 'cluster' : 'namespace';
}

import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Clock } from '../env/ports.ts';
import { MeteredTransport } from './metered-transport.ts';
import { QUEUE_METRICS, renderQueues } from './queue-metrics.ts';
import { QueueStats } from './queue-stats.ts';
import type { RequestShape } from './request-shape.ts';
import { addSampledGauge, type Sample } from './sampled-gauge.ts';
import { SteadyTime } from './steady-time.ts';
import type { Transport } from './transport.ts';

/**
 * What controllers count, under the names that KubeVirt uses, and where it has none, controller-runtime and client-go. Every
 * series exists from the moment its controller does, with the value 0.
 */

/** controller-runtime's buckets. */
const RECONCILE_SECONDS_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];

/** KubeVirt's, for requests. */
const REQUEST_SECONDS_BUCKETS = [
  0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
];

/** As which a reconcile is counted. `requeue` never is, since it does not exist here, but dashboards ask for it. */
const RESULTS = ['success', 'error', 'requeue', 'requeue_after'] as const;
/** How a reconcile ended. Those that were stopped have neither succeeded nor failed. */
export type ReconcileResult = Exclude<(typeof RESULTS)[number], 'requeue'> | 'stopped';

/** The series of one controller. */
export interface ControllerMetrics {
  /** A reconcile has begun. */
  began(): void;
  /** A reconcile has ended. */
  ended(result: ReconcileResult, durationMs: number): void;
  /** Of the reconciles that ended with `error`, one that is not retried. */
  terminalError(): void;
  /** Of the reconciles that ended with `error`, one that had a bug. */
  panicked(): void;
}

/** The series of one lease. */
export interface LeaderMetrics {
  leading(isLeading: boolean): void;
  /** A renewal needed to look at the lease first. */
  tookSlowPath(): void;
}

/** The series of the requests to one server. */
export interface RequestMetrics {
  /** A request was answered with this code; undefined where no answer came. */
  answered(method: string, shape: RequestShape, code: number | undefined): void;
  /** How long a request took, answered or not. */
  took(shape: RequestShape, durationMs: number): void;
}

/** A metric as whoever writes about it has to know it. */
export interface DescribedMetric {
  readonly name: string;
  readonly type: string;
  readonly help: string;
  readonly labels: readonly string[];
}

/** The certificates of a process that somebody knows, and when each of them ends. */
export type Certificates = () => Iterable<readonly [certificate: string, endsMs: number]>;

export class KubeMetrics {
  /** For metrics of others that are to be rendered along with these. */
  readonly registry = new Registry();
  readonly #clock: Clock;
  readonly #time: SteadyTime;
  readonly #queues = new Map<string, QueueStats>();
  readonly #certificates = new Map<string, Certificates>();
  readonly #reconciles = this.#counter('controller_runtime_reconcile_total', 'Reconciles by how they ended.', [
    'result',
  ]);
  readonly #errors = this.#counter('controller_runtime_reconcile_errors_total', 'Reconciles that failed.');
  readonly #terminalErrors = this.#counter(
    'controller_runtime_terminal_reconcile_errors_total',
    'Reconciles that failed and are not retried.',
  );
  readonly #panics = this.#counter('controller_runtime_reconcile_panics_total', 'Reconciles that had a bug.');
  readonly #workersMax = this.#gauge(
    'controller_runtime_max_concurrent_reconciles',
    'Reconciles that may be under way at once.',
  );
  readonly #activeWorkers = this.#gauge('controller_runtime_active_workers', 'Reconciles that are under way.');
  readonly #durations = new Histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'How long reconciles took.',
    labelNames: ['controller'],
    buckets: RECONCILE_SECONDS_BUCKETS,
    registers: [this.registry],
  });
  readonly #leaders = new Gauge({
    name: 'leader_election_master_status',
    help: 'Whether this process holds the lease.',
    labelNames: ['name'],
    registers: [this.registry],
  });
  readonly #slowPaths = new Counter({
    name: 'leader_election_slowpath_total',
    help: 'Renewals that needed to look at the lease first.',
    labelNames: ['name'],
    registers: [this.registry],
  });
  readonly #requests = new Counter({
    name: 'kubevirt_rest_client_requests_total',
    help: 'Requests to API servers by how they were answered, and what they were about.',
    labelNames: ['code', 'method', 'host', 'resource', 'verb'],
    registers: [this.registry],
  });
  readonly #requestDurations = new Histogram({
    name: 'kubevirt_rest_client_request_latency_seconds',
    help: 'How long requests to API servers took, except for watches; names are left out of the URLs.',
    labelNames: ['verb', 'url'],
    buckets: REQUEST_SECONDS_BUCKETS,
    registers: [this.registry],
  });

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#time = new SteadyTime(clock);
    addSampledGauge({
      registry: this.registry,
      name: 'godwit_certificate_expiration_timestamp_seconds',
      help: 'When the certificates that this process uses end, as seconds since 1970.',
      labels: ['certificate'],
      samples: () => this.#endsOfCertificates(),
    });
  }

  /** The transport, with all that goes through it counted as requests to this host. */
  metered(transport: Transport, host: string): Transport {
    return new MeteredTransport(transport, this.#requestsTo(host), this.#time);
  }

  /** The numbers of a new queue; they take the place of those of an earlier one of the same name. */
  queue(name: string): QueueStats {
    const stats = new QueueStats();
    this.#queues.set(name, stats);
    return stats;
  }

  /** Has it told when these certificates end; they take the place of those that the same owner named before. */
  certificates(owner: string, certificates: Certificates): void {
    this.#certificates.set(owner, certificates);
  }

  controller(name: string, workers: number): ControllerMetrics {
    const results = {
      success: this.#reconciles.labels(name, 'success'),
      error: this.#reconciles.labels(name, 'error'),
      requeue_after: this.#reconciles.labels(name, 'requeue_after'),
    };
    const [errors, terminalErrors, panics] = [
      this.#errors.labels(name),
      this.#terminalErrors.labels(name),
      this.#panics.labels(name),
    ];
    for (const result of RESULTS) this.#reconciles.labels(name, result).inc(0);
    for (const counter of [errors, terminalErrors, panics]) counter.inc(0);
    this.#durations.zero({ controller: name });
    this.#workersMax.labels(name).set(workers);
    const active = this.#activeWorkers.labels(name);
    active.set(0);
    return {
      began: () => active.inc(),
      ended: (result, durationMs) => {
        active.dec();
        if (result === 'stopped') return;
        results[result].inc();
        if (result === 'error') errors.inc();
        this.#durations.observe({ controller: name }, durationMs / 1000);
      },
      terminalError: () => terminalErrors.inc(),
      panicked: () => panics.inc(),
    };
  }

  leader(name: string): LeaderMetrics {
    const [leading, slowPaths] = [this.#leaders.labels(name), this.#slowPaths.labels(name)];
    leading.set(0);
    slowPaths.inc(0);
    return {
      leading: (isLeading) => leading.set(isLeading ? 1 : 0),
      tookSlowPath: () => slowPaths.inc(),
    };
  }

  /** Everything in Prometheus' text format. */
  async render(): Promise<string> {
    return `${await this.registry.metrics()}\n${renderQueues(this.#queues, this.#clock.now())}`;
  }

  /** All metrics that there are by now, whether they have series or not. */
  async describe(): Promise<readonly DescribedMetric[]> {
    return [...(await describeRegistry(this.registry)), ...QUEUE_METRICS];
  }

  /** The media type of what `render` answers. */
  get contentType(): string {
    return this.registry.contentType;
  }

  /** Finds each series once: looking it up by its labels costs more than counting. */
  #requestsTo(host: string): RequestMetrics {
    const codes = new Map<string, Counter.Internal>();
    const durations = new Map<string, Histogram.Internal<string>>();
    return {
      answered: (method, { verb, resource }, code = 0) => {
        const id = `${method} ${verb} ${resource} ${code}`;
        let series = codes.get(id);
        // What else errors say is no label: there would be no end of them.
        const told = code === 0 ? '<error>' : String(code);
        if (!series) codes.set(id, (series = this.#requests.labels(told, method, host, resource, verb)));
        series.inc();
      },
      took: ({ verb, path }, durationMs) => {
        const id = `${verb} ${path}`;
        let series = durations.get(id);
        if (!series) durations.set(id, (series = this.#requestDurations.labels(verb, `https://${host}${path}`)));
        series.observe(durationMs / 1000);
      },
    };
  }

  *#endsOfCertificates(): Generator<Sample<'certificate'>> {
    for (const certificates of this.#certificates.values())
      for (const [certificate, endsMs] of certificates()) yield [{ certificate }, endsMs / 1000];
  }

  #counter(name: string, help: string, labels: readonly string[] = []): Counter {
    return new Counter({ name, help, labelNames: ['controller', ...labels], registers: [this.registry] });
  }

  #gauge(name: string, help: string): Gauge {
    return new Gauge({ name, help, labelNames: ['controller'], registers: [this.registry] });
  }
}

/** The metrics of a registry. */
export async function describeRegistry(registry: Registry): Promise<DescribedMetric[]> {
  const metrics = await registry.getMetricsAsJSON();
  return metrics.map(({ name, help, type }) => {
    // The types of prom-client do not tell of the names of labels.
    const { labelNames } = registry.getSingleMetric(name) as unknown as { readonly labelNames: readonly string[] };
    return { name, help, type: String(type), labels: labelNames };
  });
}

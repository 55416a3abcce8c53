import { Gauge, type MetricObjectWithValues, type MetricType, type MetricValue, type Registry } from 'prom-client';

/** The labels of a series, and its value. */
export type Sample<T extends string = string> = readonly [labels: { readonly [label in T]: string }, value: number];

export interface SampledGaugeOptions<T extends string> {
  readonly registry: Registry;
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly T[];
  /** As others know the metric, where they take what is there for something that only grows. */
  readonly type?: 'gauge' | 'counter';
  /** All series as they are now. Asked for only when somebody reads them. */
  readonly samples: () => Iterable<Sample<T>>;
}

/**
 * A gauge whose series are what is there when somebody reads it. Nothing is kept of them, and none is looked up by its
 * labels, so that those of many thousand objects cost what it takes to write them down.
 */
class SampledGauge<T extends string> extends Gauge<T> {
  readonly #type: 'gauge' | 'counter';
  readonly #samples: () => Iterable<Sample<T>>;

  constructor({ registry, name, help, labels = [], type = 'gauge', samples }: SampledGaugeOptions<T>) {
    super({ name, help, labelNames: labels, registers: [registry] });
    this.#type = type;
    this.#samples = samples;
  }

  override async get(): Promise<MetricObjectWithValues<MetricValue<T>>> {
    const values = Array.from(this.#samples(), ([labels, value]): MetricValue<T> => ({ labels, value }));
    return { ...(await super.get()), type: this.#type as unknown as MetricType, values };
  }
}

/** Adds a gauge to a registry whose series are what is there when somebody reads it. */
export function addSampledGauge<T extends string = never>(options: SampledGaugeOptions<T>): void {
  void new SampledGauge(options);
}

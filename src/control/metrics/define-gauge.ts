import type { Sample, SampledGaugeOptions } from '../../kube/sampled-gauge.ts';

/** Defines a metric whose series follow from what informers hold when somebody asks for them. */
export type DefineGauge = <T extends string = never>(
  metric: Pick<SampledGaugeOptions<T>, 'name' | 'help' | 'labels' | 'type'>,
  samples: () => Iterable<Sample<T>>,
) => void;

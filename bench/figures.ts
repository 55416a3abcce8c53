/** How benchmarks speak: one JSON line per figure, with the rival's figure beside it where one is known. */
export interface Figure {
  readonly figure: string;
  readonly value: number;
  readonly unit: string;
  /** kube-apiserver 1.34 with etcd on a like machine. */
  readonly rival?: number | undefined;
  readonly [detail: string]: unknown;
}

export function report(bench: string, figure: Figure): void {
  process.stdout.write(`${JSON.stringify({ bench, ...figure, value: rounded(figure.value) })}\n`);
}

/** As many digits as a measurement on a busy machine is worth. */
export function rounded(value: number): number {
  return Number(value.toPrecision(3));
}

export function percentile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
}

/** When a certificate is to be renewed, as a pure function. */

/** Kubelets renew somewhere in this part of a certificate's life, each at its own moment. */
const EARLIEST_SHARE = 0.7;
const LATEST_SHARE = 0.9;

interface Validity {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** `chance` in [0, 1) is drawn once for each certificate. */
export function renewAtMs({ notBeforeMs, notAfterMs }: Validity, chance: number): number {
  const share = EARLIEST_SHARE + (LATEST_SHARE - EARLIEST_SHARE) * chance;
  return notBeforeMs + (notAfterMs - notBeforeMs) * share;
}

/** Whether its time is over. That it has not begun is more likely a clock that is behind, and others' clocks decide. */
export function isExpiredAt({ notAfterMs }: Pick<Validity, 'notAfterMs'>, nowMs: number): boolean {
  return nowMs >= notAfterMs;
}

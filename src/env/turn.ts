/**
 * Resolves when all that can go on without time passing and without the outside world has done so: every promise that
 * was kept has been heard of. The simulation moves its clock only then.
 */
export function turn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

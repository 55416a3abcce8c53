/** Ends a switch over a union: the compiler proves that it is never reached, the runtime checks it. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${String(value)}`);
}

/** Sets an own property whatever its name: plain assignment would call the setter of `__proto__`. */
export function setOwn(target: object, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    (target as Record<string, unknown>)[key] = value;
  }
}

/** A deep copy of JSON-like data: plain objects and arrays are copied, everything else is shared. */
export function clone<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const copy: unknown[] = Array.from({ length: value.length });
    for (let index = 0; index < value.length; index++) copy[index] = clone(value[index]);
    return copy as T;
  }
  const copy = {};
  for (const key of Object.keys(value)) setOwn(copy, key, clone((value as Record<string, unknown>)[key]));
  return copy as T;
}

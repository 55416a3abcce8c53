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
  if (Array.isArray(value)) return value.map(clone) as T;
  // Copying all fields at once is much faster than one by one. Each is then the copy's own, whatever its name.
  const copy = { ...value } as Record<string, unknown>;
  for (const key of Object.keys(copy)) {
    const field = copy[key];
    if (typeof field === 'object' && field !== null) copy[key] = clone(field);
  }
  return copy as T;
}

import { RE2JS } from 're2js';

/**
 * Regular expressions of users, on RE2: matching is linear in the text whatever the pattern, so that none can stall the
 * server by backtracking. Linear is not cheap, though: the worst patterns take a step for each of their instructions at
 * each character, and a counted repetition has as many instructions as it counts. Whoever matches pays for both.
 * The syntax is Go's, which is what Kubernetes documents for patterns.
 */

/** Enough for every pattern of a large cluster's CRDs; past it the oldest is compiled anew when needed. */
const PATTERNS_CACHED_MAX = 1024;
/** Longer patterns are refused: compiling costs time and memory in proportion. */
const PATTERN_LENGTH_MAX = 16 * 1024;

/** A compiled pattern. */
export class Pattern {
  readonly #compiled: RE2JS;
  /** How many instructions it has. */
  readonly size: number;

  constructor(source: string) {
    this.#compiled = RE2JS.compile(source);
    this.size = this.#compiled.programSize();
  }

  /** The most steps that matching this text can take. */
  stepsFor(text: string): number {
    return (text.length + 1) * this.size;
  }

  /** Whether the pattern occurs in the text. */
  test(text: string): boolean {
    return this.#compiled.test(text);
  }

  /** The places where it occurs, one after another. */
  *find(text: string): Generator<string, undefined> {
    const matcher = this.#compiled.matcher(text);
    while (matcher.find()) yield matcher.group() ?? '';
  }
}

const cache = new Map<string, Pattern>();

/** Whether compiling this pattern costs nothing, because it was compiled not long ago. */
export function isCompiled(source: string): boolean {
  return cache.has(source);
}

/** Compiles a pattern, or throws an Error whose message says what is wrong with it. */
export function compilePattern(source: string): Pattern {
  const known = cache.get(source);
  if (known) return known;
  if (source.length > PATTERN_LENGTH_MAX) throw new Error('error parsing regexp: expression too long');
  const compiled = new Pattern(source);
  if (cache.size >= PATTERNS_CACHED_MAX) {
    const oldest = cache.keys().next();
    if (!oldest.done) cache.delete(oldest.value);
  }
  cache.set(source, compiled);
  return compiled;
}

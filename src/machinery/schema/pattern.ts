import { RE2JS } from 're2js';

/**
 * Regular expressions of users, on RE2: matching is linear in the text whatever the pattern, so neither a schema nor
 * a rule can stall the server. The syntax is Go's, which is what Kubernetes documents for patterns.
 */

/** Enough for every pattern of a large cluster's CRDs; past it the oldest is compiled anew when needed. */
const PATTERNS_CACHED_MAX = 1024;
/** Longer patterns are refused: compiling costs memory in proportion. */
const PATTERN_LENGTH_MAX = 64 * 1024;

const cache = new Map<string, RE2JS>();

/** Compiles a pattern, or throws an Error whose message says what is wrong with it. */
export function compilePattern(source: string): RE2JS {
  const known = cache.get(source);
  if (known) return known;
  if (source.length > PATTERN_LENGTH_MAX) throw new Error('error parsing regexp: expression too long');
  const compiled = RE2JS.compile(source);
  if (cache.size >= PATTERNS_CACHED_MAX) {
    const oldest = cache.keys().next();
    if (!oldest.done) cache.delete(oldest.value);
  }
  cache.set(source, compiled);
  return compiled;
}

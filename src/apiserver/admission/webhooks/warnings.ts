import type { WriteContext } from '../../registry/contract.ts';

/** How much text webhooks may send along with one answer: it all travels in headers. */
const TOTAL_LENGTH_MAX = 4096;
/** Past that, each warning is cut to this. */
const CUT_LENGTH = 256;

/** Adds a webhook's warnings to those of the request, each once, and cut where they grow too long for headers. */
export function addWarnings(context: WriteContext, warnings: readonly string[]): void {
  const known = new Set(context.warnings);
  let length = context.warnings.reduce((sum, each) => sum + each.length, 0);
  for (const warning of warnings) {
    if (length >= TOTAL_LENGTH_MAX) return;
    // No character is torn apart.
    const isLong = warning.length > CUT_LENGTH && length + warning.length > TOTAL_LENGTH_MAX;
    const shown = isLong ? warning.slice(0, CUT_LENGTH).replace(/[\uD800-\uDBFF]$/, '') : warning;
    if (shown === '' || known.has(shown)) continue;
    known.add(shown);
    length += shown.length;
    context.warnings.push(shown);
  }
}

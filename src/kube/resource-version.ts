const NUMBER = /^\d+$/;

/**
 * Which of two resourceVersions is newer: negative when `a` is older than `b`, zero when they are the same, positive
 * when `a` is newer. Undefined when one is missing or no number: then only the order in which they came says anything.
 */
export function compareVersions(a: string | undefined, b: string | undefined): number | undefined {
  if (a === undefined || b === undefined) return undefined;
  if (a === b) return 0;
  if (!NUMBER.test(a) || !NUMBER.test(b)) return undefined;
  // They can exceed what a number holds, and have no leading zeros: the longer is the larger.
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

/** The newer of two resourceVersions; `b`, which came later, where they cannot be compared. */
export function newerVersion(a: string | undefined, b: string): string {
  const order = compareVersions(a, b);
  return a !== undefined && order !== undefined && order > 0 ? a : b;
}

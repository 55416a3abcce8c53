import { evaluationError } from './budget.ts';
import { type Overload, overload } from './functions.ts';
import { OpaqueValue, type Value } from './values.ts';

/** Semantic versions. Build metadata is read and ignored. */
class SemverValue extends OpaqueValue {
  readonly typeName = 'kubernetes.Semver';
  readonly numbers: readonly [major: bigint, minor: bigint, patch: bigint];
  readonly prerelease: readonly string[];

  constructor(numbers: readonly [bigint, bigint, bigint], prerelease: readonly string[]) {
    super();
    this.numbers = numbers;
    this.prerelease = prerelease;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof SemverValue && compareVersions(this, other) === 0;
  }
}

const VERSION =
  /^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?$/;
/** Longest version that is read at all. */
const TEXT_LENGTH_MAX = 256;

function parseVersion(given: string, isLenient: boolean): SemverValue | undefined {
  if (given.length > TEXT_LENGTH_MAX) return undefined;
  const match = VERSION.exec(isLenient ? normalize(given) : given);
  if (!match) return undefined;
  const prerelease = match[4] === undefined ? [] : match[4].split('.');
  if (prerelease.some((part) => /^0[0-9]+$/.test(part))) return undefined;
  return new SemverValue([BigInt(match[1] ?? 0), BigInt(match[2] ?? 0), BigInt(match[3] ?? 0)], prerelease);
}

/** Drops a leading `v` and leading zeros, and fills in missing numbers, as in `v1.02`. */
function normalize(given: string): string {
  const [numbers = '', rest = ''] = given.replace(/^v/, '').split(/(?=[-+])(.*)/s, 2);
  const parts = numbers.split('.').map((part) => part.replace(/^0+(?=[0-9])/, ''));
  if (parts.length < 3 && rest !== '') return given;
  while (parts.length < 3) parts.push('0');
  return parts.join('.') + rest;
}

function compareVersions(left: SemverValue, right: SemverValue): number {
  for (const [index, number] of left.numbers.entries()) {
    const other = right.numbers[index] ?? 0n;
    if (number !== other) return number < other ? -1 : 1;
  }
  // A version with a prerelease comes before the same without.
  const [isPre, isOtherPre] = [left.prerelease.length > 0, right.prerelease.length > 0];
  if (isPre !== isOtherPre) return isPre ? -1 : 1;
  for (const [index, part] of left.prerelease.entries()) {
    const other = right.prerelease[index];
    if (other === undefined) return 1;
    const order = comparePrerelease(part, other);
    if (order !== 0) return order;
  }
  return left.prerelease.length < right.prerelease.length ? -1 : 0;
}

function comparePrerelease(left: string, right: string): number {
  const [isNumber, isOtherNumber] = [/^[0-9]+$/.test(left), /^[0-9]+$/.test(right)];
  if (isNumber && isOtherNumber) return Number(BigInt(left) > BigInt(right)) - Number(BigInt(left) < BigInt(right));
  if (isNumber !== isOtherNumber) return isNumber ? -1 : 1;
  return Number(left > right) - Number(left < right);
}

function version(text: Value | undefined, isLenient: boolean): SemverValue {
  const parsed = parseVersion(text as string, isLenient);
  if (!parsed) throw evaluationError('No Major.Minor.Patch elements found');
  return parsed;
}

function order(left: Value | undefined, right: Value | undefined): number {
  return compareVersions(left as SemverValue, right as SemverValue);
}

export const semverFunctions: readonly Overload[] = [
  overload('semver(string): Semver', ([text]) => version(text, false)),
  overload('semver(string, bool): Semver', ([text, isLenient]) => version(text, isLenient as boolean)),
  overload('isSemver(string): bool', ([text]) => parseVersion(text as string, false) !== undefined),
  overload(
    'isSemver(string, bool): bool',
    ([text, isLenient]) => parseVersion(text as string, isLenient as boolean) !== undefined,
  ),
  overload('Semver.isGreaterThan(Semver): bool', ([left, right]) => order(left, right) > 0),
  overload('Semver.isLessThan(Semver): bool', ([left, right]) => order(left, right) < 0),
  overload('Semver.compareTo(Semver): int', ([left, right]) => BigInt(order(left, right))),
  overload('Semver.major(): int', ([value]) => (value as SemverValue).numbers[0]),
  overload('Semver.minor(): int', ([value]) => (value as SemverValue).numbers[1]),
  overload('Semver.patch(): int', ([value]) => (value as SemverValue).numbers[2]),
];

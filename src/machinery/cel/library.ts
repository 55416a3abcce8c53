import type { Overload } from './functions.ts';
import { formatFunctions } from './library-format.ts';
import { listFunctions } from './library-lists.ts';
import { networkFunctions } from './library-network.ts';
import { operators } from './library-operators.ts';
import { optionalFunctions } from './library-optional.ts';
import { quantityFunctions } from './library-quantity.ts';
import { regexFunctions } from './library-regex.ts';
import { semverFunctions } from './library-semver.ts';
import { standardFunctions } from './library-standard.ts';
import { stringFunctions } from './library-strings.ts';
import { timeFunctions } from './library-time.ts';

const all: readonly Overload[] = [
  ...operators,
  ...standardFunctions,
  ...timeFunctions,
  ...stringFunctions,
  ...listFunctions,
  ...regexFunctions,
  ...optionalFunctions,
  ...quantityFunctions,
  ...networkFunctions,
  ...formatFunctions,
  ...semverFunctions,
];

const functions = group(all);

function group(overloads: readonly Overload[]): ReadonlyMap<string, readonly Overload[]> {
  const groups = new Map<string, Overload[]>();
  for (const each of overloads) {
    const key = keyOf(each.name, each.isMethod);
    const known = groups.get(key);
    if (known) known.push(each);
    else groups.set(key, [each]);
  }
  return groups;
}

function keyOf(name: string, isMethod: boolean): string {
  return isMethod ? `.${name}` : name;
}

/** Every overload of a function or method; empty where there is no such function. */
export function overloadsOf(name: string, isMethod: boolean): readonly Overload[] {
  return functions.get(keyOf(name, isMethod)) ?? [];
}

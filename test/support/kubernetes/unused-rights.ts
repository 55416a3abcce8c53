import { EVERYWHERE, type Right } from '../../../src/cli/manifests/rights-page.fixture.ts';

/** Which rights nobody has used, given what was asked for; pure. */

/** What an API server was asked for, and did. */
export interface Use {
  /** As in the rights that it may be an example of. */
  readonly holder: string;
  readonly verb: string;
  readonly group: string;
  /** With its subresource, where there is one. */
  readonly resource: string;
  /** Empty where it was about all of them. */
  readonly name: string;
  /** Empty where it was about no namespace, or all of them. */
  readonly namespace: string;
}

/** One verb, of one name where the right is of names. */
interface SingleRight extends Omit<Right, 'names' | 'verbs'> {
  readonly name: string | undefined;
  readonly verb: string;
}

/** All that the rights say, each as one line: who, where, group, what, verb. */
export function linesOf(rights: readonly Right[]): string[] {
  return rights.flatMap(singleRights).map(lineOf);
}

/** The lines of those rights of which no use is an example. */
export function unusedRights(rights: readonly Right[], uses: readonly Use[]): string[] {
  const unused = rights.flatMap(singleRights).filter((right) => !uses.some((use) => isExample(use, right)));
  return unused.map(lineOf);
}

function singleRights({ names, verbs, ...rest }: Right): SingleRight[] {
  const each = names.length === 0 ? [undefined] : names;
  return each.flatMap((name) => verbs.map((verb) => ({ ...rest, name, verb })));
}

function lineOf({ holder, where, group, resource, name, verb }: SingleRight): string {
  const what = name === undefined ? resource : `${resource} ${name}`;
  return [holder, where, group === '' ? 'core' : group, what, verb].join(' | ');
}

function isExample(use: Use, right: SingleRight): boolean {
  return (
    use.holder === right.holder &&
    (right.where === EVERYWHERE || use.namespace === right.where) &&
    isOf(use.group, right.group) &&
    isOf(use.resource, right.resource) &&
    (right.name === undefined || use.name === right.name) &&
    provedBy(right).some((verb) => isOf(use.verb, verb))
  );
}

function isOf(asked: string, allowed: string): boolean {
  return allowed === '*' || asked === allowed;
}

const READ = ['get', 'list', 'watch'];

/**
 * The verbs that show that a right is needed: its own, and those that let see no less. Informers list, or, where the server can begin a watch
 * with all there is, watch alone; who may do either may see each object. Of one name, all three show the same.
 */
function provedBy({ verb, name }: SingleRight): readonly string[] {
  if (!READ.includes(verb)) return [verb];
  return verb === 'get' || name !== undefined ? READ : ['list', 'watch'];
}

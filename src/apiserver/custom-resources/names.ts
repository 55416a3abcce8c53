import type { Condition } from '../../api/meta.ts';
import type { CustomResourceDefinition, CustomResourceNames } from './wire.ts';
import { conditionOf, storageVersionOf } from './wire.ts';

/** Which of the names that a CRD asks for it gets: no two resources of a group may answer to the same one. */

/** The names in use by all other resources of the group. */
export interface TakenNames {
  readonly resources: ReadonlySet<string>;
  readonly kinds: ReadonlySet<string>;
}

export interface NamesDecision {
  /** What the CRD may be called: what it asks for where that is free, else what it had. */
  readonly names: CustomResourceNames;
  readonly conflict?: { readonly reason: string; readonly message: string };
}

/** Decides on names. What was accepted earlier stays accepted; the last conflict found is the one reported. */
export function decideNames(
  requested: CustomResourceNames,
  accepted: CustomResourceNames,
  taken: TakenNames,
): NamesDecision {
  // The two that the API requires are there even when they are not ours yet.
  const names: CustomResourceNames = { plural: '', kind: '', ...accepted };
  let conflict: NamesDecision['conflict'];
  const refuse = (field: string, used: readonly string[]): void => {
    const sentences = used.map((name) => `${JSON.stringify(name)} is already in use`);
    const message = sentences.length === 1 ? (sentences[0] ?? '') : `[${sentences.join(', ')}]`;
    conflict = { reason: `${field[0]?.toUpperCase()}${field.slice(1)}Conflict`, message };
  };
  const claim = (field: 'plural' | 'singular' | 'kind' | 'listKind', used: ReadonlySet<string>): void => {
    const name = requested[field] ?? '';
    if (name !== accepted[field] && used.has(name)) refuse(field, [name]);
    else names[field] = name;
  };
  claim('plural', taken.resources);
  claim('singular', taken.resources);
  const own = new Set(accepted.shortNames);
  const used = (requested.shortNames ?? []).filter((name) => !own.has(name) && taken.resources.has(name));
  if (used.length > 0) refuse('shortNames', used);
  else replaceList(names, 'shortNames', requested.shortNames);
  claim('kind', taken.kinds);
  claim('listKind', taken.kinds);
  replaceList(names, 'categories', requested.categories);
  return conflict ? { names, conflict } : { names };
}

function replaceList(names: CustomResourceNames, field: 'shortNames' | 'categories', list: string[] | undefined): void {
  if (list && list.length > 0) names[field] = list;
  else delete names[field];
}

/** Whether a CRD is served: once it was, a later conflict does not take it away. */
export function isEstablished(crd: CustomResourceDefinition, decision: NamesDecision): boolean {
  return conditionOf(crd, 'Established')?.status === 'True' || decision.conflict === undefined;
}

/** The status that a decision leads to; `now` stamps only conditions whose status changes. */
export function applyDecision(crd: CustomResourceDefinition, decision: NamesDecision, now: string): void {
  const version = storageVersionOf(crd);
  const stored = crd.status?.storedVersions ?? [];
  crd.status = {
    ...crd.status,
    acceptedNames: decision.names,
    storedVersions: version === undefined || stored.includes(version) ? stored : [...stored, version],
  };
  setCondition(
    crd,
    decision.conflict
      ? { type: 'NamesAccepted', status: 'False', ...decision.conflict }
      : { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' },
    now,
  );
  setCondition(
    crd,
    isEstablished(crd, decision)
      ? {
          type: 'Established',
          status: 'True',
          reason: 'InitialNamesAccepted',
          message: 'the initial names have been accepted',
        }
      : { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' },
    now,
  );
}

/** Sets a condition; its time changes only with its status. */
export function setCondition(crd: CustomResourceDefinition, condition: Condition, now: string): void {
  const conditions = crd.status?.conditions ?? [];
  const old = conditions.find((each) => each.type === condition.type);
  const lastTransitionTime = old?.status === condition.status ? (old.lastTransitionTime ?? now) : now;
  const next = { ...condition, lastTransitionTime };
  crd.status = {
    ...crd.status,
    conditions: old ? conditions.map((each) => (each === old ? next : each)) : [...conditions, next],
  };
}

import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../../api/meta.ts';

/** What Helm does with a template of ours, which have one kind of expression alone. */

/** Puts values into a template. Throws where there is an expression of another kind, or a value that is not there. */
export function rendered(template: string, values: object): KubeObject[] {
  const text = template.replaceAll(/\{\{(.*?)\}\}/g, (_, expression: string) => {
    const path = /^ toJson \.Values\.([\w.]+) $/.exec(expression)?.[1];
    if (path === undefined) throw new Error(`a template has {{${expression}}}`);
    const value = path.split('.').reduce<unknown>((found, key) => Reflect.get(found as object, key), values);
    if (value === undefined) throw new Error(`there is no value ${path}`);
    return JSON.stringify(value);
  });
  return objectsIn(text);
}

/** The objects in a text of YAML. */
export function objectsIn(text: string): KubeObject[] {
  return parseAllDocuments(text).map((document) => {
    if ('errors' in document && document.errors[0]) throw document.errors[0];
    return (document as { toJS: () => unknown }).toJS() as KubeObject;
  });
}

/** Values with an admin's own over them: maps are merged, and all else is replaced. */
export function mergedValues(values: object, own: object): object {
  const merged = Object.entries(own).map(([key, value]): [string, unknown] => {
    const former: unknown = Reflect.get(values, key);
    return [key, isMap(former) && isMap(value) ? mergedValues(former, value) : value];
  });
  return { ...values, ...Object.fromEntries(merged) };
}

const isMap = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value);

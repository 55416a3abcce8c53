import type { KubeObject } from '../meta.ts';
import type { Schema, ValidationRule } from '../schema.ts';
import { type Needed, object, type Shape, text } from '../typed-schema.ts';
import { PART_OF_GODWIT } from './well-known.ts';

/** A kind that we define, and the CustomResourceDefinition that follows from it. */

/** A column of `kubectl get`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly jsonPath: string;
  readonly description?: string;
  /** Above 0, it is only shown with `-o wide`. */
  readonly priority?: number;
}

export interface CustomKind {
  readonly group: string;
  readonly version: string;
  /** Versions of the same schema that are still served, and deprecated. */
  readonly olderVersions?: readonly string[];
  readonly kind: string;
  readonly plural: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly description: string;
  /** The fields beside apiVersion, kind and metadata. */
  readonly fields: { readonly [field: string]: Shape<unknown> | Needed<unknown> };
  readonly hasStatus: boolean;
  /** Rules in CEL for the whole object. */
  readonly rules?: readonly ValidationRule[];
  readonly columns: readonly PrinterColumn[];
}

/** The CustomResourceDefinition of a kind, ready to be applied. */
export function customResourceDefinitionOf(kind: CustomKind): KubeObject {
  const { group, version, olderVersions = [], plural, scope, shortNames, categories, columns } = kind;
  const shared = {
    schema: { openAPIV3Schema: schemaOf(kind) },
    ...(kind.hasStatus ? { subresources: { status: {} } } : {}),
    ...(columns.length > 0 ? { additionalPrinterColumns: columns } : {}),
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, labels: PART_OF_GODWIT },
    spec: {
      group,
      scope,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural,
        singular: kind.kind.toLowerCase(),
        shortNames,
        ...(categories.length > 0 ? { categories } : {}),
      },
      versions: [
        { name: version, served: true, storage: true, ...shared },
        ...olderVersions.map((each) => ({
          name: each,
          served: true,
          storage: false,
          deprecated: true,
          deprecationWarning: `${group}/${each} ${kind.kind} is deprecated; use ${group}/${version}`,
          ...shared,
        })),
      ],
    },
  };
}

function schemaOf(kind: CustomKind): Schema {
  const metadata: Shape<unknown> = { type: 'object' };
  return object(
    kind.description,
    {
      apiVersion: text('Version of the schema of this object.'),
      kind: text('What this object is.'),
      metadata,
      ...kind.fields,
    },
    kind.rules ? { 'x-kubernetes-validations': kind.rules } : {},
  );
}

import { objectMeta, statusSubresource } from '../../api/kinds/meta.ts';
import { scaleSchema } from '../../api/kinds/meta-options.ts';
import type { Json, KubeObject } from '../../api/meta.ts';
import { qualifiedNameErrors } from '../../api/names.ts';
import type { Column, ResourceDefinition, SubresourceDefinition, Verb } from '../../api/resource.ts';
import { type Schema, str } from '../../api/schema.ts';
import { compileSchema } from '../../machinery/schema/compile.ts';
import type { CustomResourceColumn, CustomResourceDefinition, CustomResourceVersion } from './wire.ts';

/** What a CRD makes the server serve. */

const scaleSubresource: SubresourceDefinition = {
  name: 'scale',
  group: 'autoscaling',
  version: 'v1',
  kind: 'Scale',
  verbs: ['get', 'patch', 'update'],
  schema: scaleSchema,
};

/** In the order in which kube-apiserver lists them for custom resources; clients print it. */
const VERBS: readonly Verb[] = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'];

/** A terminating CRD takes no new objects, or its clean-up might never end. */
const TERMINATING_VERBS = VERBS.filter((verb) => verb !== 'create');

/**
 * One definition per served version of a valid CRD, the storage version first. All versions share one bucket and
 * differ only in their schema: an object of one is read as the other with its apiVersion changed, and pruned and
 * defaulted as that one's schema says.
 */
export function definitionsOf(crd: KubeObject): ResourceDefinition[] {
  const { spec } = crd as CustomResourceDefinition;
  const served = (spec?.versions ?? []).filter((version) => version.served);
  served.sort((a, b) => Number(b.storage ?? false) - Number(a.storage ?? false));
  const [stored, ...others] = served.map((version) => definitionOf(crd as CustomResourceDefinition, version));
  if (!stored) return [];
  const { group, plural } = stored;
  const toStorage = shaper(stored.schema);
  return [
    stored,
    ...others.map((each) => ({ ...each, storage: { group, plural, toStorage, fromStorage: shaper(each.schema) } })),
  ];
}

/** Makes an object one that this schema could have let in, as far as pruning and defaults go. */
function shaper(schema: Schema): (object: KubeObject) => void {
  return (object) => {
    const compiled = compileSchema(schema);
    compiled.prune(object as unknown as Json);
    compiled.applyDefaults(object as unknown as Json);
  };
}

function definitionOf(crd: CustomResourceDefinition, version: CustomResourceVersion): ResourceDefinition {
  const { group = '', names = {}, scope } = crd.spec ?? {};
  const { kind = '', plural = '' } = names;
  const scale = version.subresources?.scale;
  const hasStatus = version.subresources?.status !== undefined;
  return {
    group,
    version: version.name ?? '',
    plural,
    singular: names.singular || kind.toLowerCase(),
    kind,
    listKind: names.listKind || `${kind}List`,
    namespaced: scope === 'Namespaced',
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    verbs: crd.metadata.deletionTimestamp === undefined ? VERBS : TERMINATING_VERBS,
    schema: objectSchemaOf(version.schema?.openAPIV3Schema ?? {}),
    hasStatus,
    hasGeneration: true,
    subresources: [...(scale ? [scaleSubresource] : []), ...(hasStatus ? [statusSubresource] : [])],
    columns: (version.additionalPrinterColumns ?? []).map(columnOf),
    selectableFields: (version.selectableFields ?? []).map((field) => (field.jsonPath ?? '').replace(/^\./, '')),
    ...(scale
      ? {
          scale: {
            specReplicasPath: scale.specReplicasPath ?? '',
            statusReplicasPath: scale.statusReplicasPath ?? '',
            ...(scale.labelSelectorPath ? { labelSelectorPath: scale.labelSelectorPath } : {}),
          },
        }
      : {}),
    custom: true,
    shapedSince: Number(crd.metadata.resourceVersion ?? 0),
    strategy: { warnings: finalizerWarnings },
    ...(version.deprecated ? { deprecation: deprecationOf(crd, version) } : {}),
  };
}

const STANDARD_FINALIZERS: ReadonlySet<string> = new Set(['orphan', 'foregroundDeletion', 'kubernetes']);

/** Built-in kinds refuse finalizers that could be anybody's; custom ones have had them for too long. */
function finalizerWarnings(object: KubeObject, old: KubeObject | undefined): string[] {
  const known = new Set(old?.metadata.finalizers);
  return (object.metadata.finalizers ?? [])
    .filter((finalizer) => !known.has(finalizer))
    .sort()
    .flatMap((finalizer) => {
      const warnings = qualifiedNameErrors(finalizer);
      if (!finalizer.includes('/') && !STANDARD_FINALIZERS.has(finalizer)) {
        const path = finalizer.includes('.') ? ' including a path (/)' : '';
        warnings.push(
          `prefer a domain-qualified finalizer name${path} to avoid accidental conflicts with other finalizer writers`,
        );
      }
      return warnings.map((warning) => `metadata.finalizers: ${JSON.stringify(finalizer)}: ${warning}`);
    });
}

function deprecationOf(crd: CustomResourceDefinition, version: CustomResourceVersion): string {
  const { group = '', names } = crd.spec ?? {};
  return version.deprecationWarning ?? `${group}/${version.name} ${names?.kind} is deprecated`;
}

/**
 * The CRD's schema completed by what every object has. Authors may restrict the object's name and nothing else of the
 * metadata, so theirs is laid over ours.
 */
function objectSchemaOf(schema: Schema): Schema {
  const own = schema.properties ?? {};
  const ownMetadata = own['metadata'];
  const metadata: Record<string, Schema> = { ...objectMeta.properties };
  for (const field of ['name', 'generateName']) {
    const restricted = ownMetadata?.properties?.[field];
    if (restricted) metadata[field] = { ...metadata[field], ...restricted };
  }
  const required = ownMetadata?.required ? { required: ownMetadata.required } : {};
  return {
    ...schema,
    type: 'object',
    properties: {
      apiVersion: str({ description: 'Version of the schema of this object.' }),
      kind: str({ description: 'What this object is.' }),
      ...own,
      metadata: { ...objectMeta, ...required, properties: metadata, description: 'Standard metadata.' },
    },
  };
}

function columnOf(column: CustomResourceColumn): Column {
  return {
    name: column.name ?? '',
    type: (column.type ?? 'string') as Column['type'],
    ...(column.format === undefined ? {} : { format: column.format }),
    ...(column.description === undefined ? {} : { description: column.description }),
    ...(column.priority === undefined ? {} : { priority: column.priority }),
    jsonPath: column.jsonPath ?? '',
  };
}

import type { Condition, KubeObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';

/** A CustomResourceDefinition as on the wire. It may not have been validated yet, so everything is optional. */

export interface CustomResourceNames {
  plural?: string;
  singular?: string;
  kind?: string;
  listKind?: string;
  shortNames?: string[];
  categories?: string[];
}

export interface CustomResourceColumn {
  name?: string;
  type?: string;
  format?: string;
  description?: string;
  priority?: number;
  jsonPath?: string;
}

export interface CustomResourceScale {
  specReplicasPath?: string;
  statusReplicasPath?: string;
  labelSelectorPath?: string;
}

export interface CustomResourceVersion {
  name?: string;
  served?: boolean;
  storage?: boolean;
  deprecated?: boolean;
  deprecationWarning?: string;
  schema?: { openAPIV3Schema?: Schema };
  subresources?: { status?: object; scale?: CustomResourceScale };
  additionalPrinterColumns?: CustomResourceColumn[];
  selectableFields?: { jsonPath?: string }[];
}

export interface CustomResourceDefinition extends KubeObject {
  spec?: {
    group?: string;
    scope?: string;
    names?: CustomResourceNames;
    versions?: CustomResourceVersion[];
    conversion?: { strategy?: string; webhook?: object };
    preserveUnknownFields?: boolean;
  };
  status?: {
    acceptedNames?: CustomResourceNames;
    storedVersions?: string[];
    conditions?: Condition[];
  };
}

/** Keeps a CRD in the store until its objects are gone. */
export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';

/** The condition of a type, if the CRD has it. */
export function conditionOf(crd: CustomResourceDefinition, type: string): Condition | undefined {
  return crd.status?.conditions?.find((condition) => condition.type === type);
}

/** The version that objects are stored in; valid CRDs have exactly one. */
export function storageVersionOf(crd: CustomResourceDefinition): string | undefined {
  return crd.spec?.versions?.find((version) => version.storage)?.name;
}

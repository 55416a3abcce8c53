import { KUBEVIRT_CRDS } from '../../api/kubevirt/crds.ts';
import type { Json, KubeObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { compileSchema } from '../../machinery/schema/compile.ts';

/**
 * Webhooks that change objects are asked before the API server has looked at them: what is not even of the right shape is
 * left for the server to refuse, which does that in the words that users know.
 */

interface Definition {
  readonly names: { readonly plural: string };
  readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[];
}

const SCHEMAS: ReadonlyMap<string, Schema> = new Map(
  KUBEVIRT_CRDS.flatMap(({ spec }) => {
    const { names, versions } = spec as Definition;
    return versions.map(({ schema }) => [names.plural, schema.openAPIV3Schema] as const);
  }),
);

/** Whether an object is what its schema says. Rules on changes are not asked. */
export function isWellFormed(plural: string, object: KubeObject): boolean {
  const schema = SCHEMAS.get(plural);
  return schema !== undefined && compileSchema(schema).validate(object as unknown as Json).length === 0;
}

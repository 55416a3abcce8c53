import { builtinDefinitions } from '../../api/kinds/builtins.ts';
import { apiVersionOf, type KubeObject } from '../../api/meta.ts';
import { expect } from 'vitest';
import { ApiError } from '../../api/status.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../registry/contract.ts';
import { AdmissionChain } from './chain.ts';

/** What the tests of plug-ins share. */

export function object(kind: string, name: string, fields: Record<string, unknown> = {}, namespace = 'ns'): KubeObject {
  const definition = builtinDefinitions.find((each) => each.kind === kind);
  if (!definition) throw new Error(`${kind} is not built in`);
  const apiVersion = apiVersionOf(definition.group, definition.version);
  const metadata = { name, ...(namespace === '' ? {} : { namespace }) };
  return { apiVersion, kind, metadata, ...fields } as KubeObject;
}

export function pod(spec: Record<string, unknown> = {}, annotations?: Record<string, string>): KubeObject {
  const made = object('Pod', 'p', { spec: { containers: [], ...spec } });
  if (annotations) made.metadata.annotations = annotations;
  return made;
}

/** Runs one plug-in as the chain would; answers the refusal. */
export async function refused(
  plugin: AdmissionPlugin | Promise<AdmissionPlugin>,
  attributes: AdmissionAttributes,
): Promise<ApiError | undefined> {
  const chain = new AdmissionChain([await plugin]);
  try {
    await chain.mutate(attributes);
    await chain.validate(attributes);
    return undefined;
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    return error as ApiError;
  }
}

export const specOf = ({ object }: AdmissionAttributes): unknown => object?.['spec'];

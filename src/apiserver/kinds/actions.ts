import { ageColumn, column, countColumn, nameColumn } from '../../api/kinds/columns.ts';
import { numberAt } from '../../api/kinds/core/fields.ts';
import { builtin } from '../../api/kinds/meta.ts';
import { scaleSchema } from '../../api/kinds/meta-options.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import type { Env } from '../../env/ports.ts';
import type { ServiceAccountTokens } from '../auth/tokens.ts';
import type { Action } from '../endpoints/subresources.ts';
import type { Registry } from '../registry/contract.ts';
import { bindPod } from './binding.ts';
import { evictPod } from './eviction.ts';
import { requestToken } from './token-request.ts';

/** Scale is served only as a subresource; this is its shape. */
export const scaleDefinition: ResourceDefinition = builtin({
  group: 'autoscaling',
  version: 'v1',
  plural: 'scales',
  kind: 'Scale',
  namespaced: true,
  schema: scaleSchema,
  columns: [
    nameColumn,
    column('Desired', 'integer', 'How many are wanted.', (spec) => numberAt(spec, 'replicas') ?? 0),
    countColumn('Available', 'How many there are.', 'replicas'),
    ageColumn,
  ],
});

/** What a POST to a subresource does, by `bucket/subresource`. */
export function actions(options: {
  env: Env;
  registry: Registry;
  tokens: ServiceAccountTokens;
}): ReadonlyMap<string, Action> {
  const { env, registry, tokens } = options;
  return new Map<string, Action>([
    [
      'pods/eviction',
      ({ call: { target }, context, body }) =>
        evictPod({
          registry,
          context,
          namespace: target.namespace,
          name: target.name,
          eviction: body,
          nowMs: env.clock.now(),
        }),
    ],
    [
      'pods/binding',
      ({ call: { target }, context, body }) =>
        bindPod({
          registry,
          context,
          namespace: target.namespace,
          name: target.name,
          binding: body,
          nowMs: env.clock.now(),
        }),
    ],
    [
      'serviceaccounts/token',
      ({ call: { target }, context, body }) =>
        requestToken({
          registry,
          tokens,
          context,
          namespace: target.namespace,
          name: target.name,
          request: body,
          nowMs: env.clock.now(),
        }),
    ],
  ]);
}

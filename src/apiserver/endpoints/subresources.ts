import { apiVersionOf, type Json, type KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition, SubresourceDefinition } from '../../api/resource.ts';
import { invalid } from '../../api/field-error.ts';
import { invalidObject, methodNotAllowed, notFound } from '../../api/status.ts';
import { compileSchema } from '../../machinery/schema/compile.ts';
import type { ApiResponse } from '../http/message.ts';
import type { WriteContext } from '../registry/contract.ts';
import { alignIdentity } from '../registry/preparation.ts';
import type { ResourceRegistry } from '../registry/registry.ts';
import { expectKind, readBody, refuseMistyped } from './body.ts';
import { type Call, writeContext } from './context.ts';
import { respond } from './negotiate.ts';
import { readPatch } from './patch.ts';
import { respondObject } from './respond-object.ts';
import { type Scale, scaleOf, withScale } from './scale.ts';
import { isTrue } from '../http/request-info.ts';
import { writeOptionsOf } from './write-options.ts';

/** Subresources that are no mere part of their object: actions (eviction, binding, token) and views (scale). */

/** Something that a POST to a subresource does: gets the admitted body, answers the object or Status to send. */
export type Action = (request: {
  readonly call: Call;
  readonly context: WriteContext;
  readonly body: KubeObject;
}) => Promise<object>;

/** Reads a POSTed body, admits it as what it is, and hands it to the action. */
export async function serveAction(
  call: Call,
  registry: ResourceRegistry,
  definition: SubresourceDefinition,
  action: Action,
): Promise<ApiResponse> {
  if (call.info.verb !== 'create') throw methodNotAllowed();
  const context = writeContext(call);
  const body = await readAction(call, definition);
  await registry.admit({
    operation: 'CREATE',
    target: call.target,
    object: body,
    oldObject: undefined,
    options: undefined,
    context,
  });
  const answer = await action({ call, context, body });
  return respond(call.representation, 201, JSON.stringify(answer), context.warnings);
}

async function readAction(
  call: Call,
  { kind, group = '', version = '', schema: ownSchema }: SubresourceDefinition,
): Promise<KubeObject> {
  const { definition, name, namespace } = call.target;
  const schema = ownSchema ?? definition.schema;
  const wantedKind = kind ?? definition.kind;
  const decoded = await readBody(call.request, (_apiVersion, each) => (each === wantedKind ? schema : undefined));
  const value = decoded?.value;
  const given = (value as { apiVersion?: unknown } | null | undefined)?.apiVersion;
  // Older clients send older versions of the same small body (policy/v1beta1 evictions); only the group counts.
  const isSameGroup = typeof given === 'string' && given.split('/').slice(0, -1).join('/') === group;
  const body = expectKind(value, isSameGroup ? given : apiVersionOf(group, version), wantedKind);
  // A status is the answer's; typed clients send an empty one along.
  delete (body as { status?: unknown }).status;
  const compiled = compileSchema(schema, { builtin: true });
  compiled.prune(body as unknown as Json);
  refuseMistyped({ schema, kind: wantedKind, version }, body);
  compiled.applyDefaults(body as unknown as Json);
  const errors = compiled.validate(body as unknown as Json);
  if (errors.length > 0) throw invalidObject(group, wantedKind, name, errors);
  // Who evicts or binds has to name the pod twice; a token is asked for with a nameless body.
  if (wantedKind === 'TokenRequest') body.metadata.name ??= name;
  if (definition.namespaced) body.metadata.namespace ??= namespace;
  return body;
}

/** GET, PUT and PATCH of `scale`. */
export async function serveScale(
  call: Call,
  registry: ResourceRegistry,
  scaleDefinition: ResourceDefinition,
  nowMs: number,
): Promise<ApiResponse> {
  const { target, request } = call;
  const { definition } = target;
  const context = writeContext(call);
  const answer = (object: KubeObject): ApiResponse =>
    respondObject(call, scaleDefinition, scaleOf(definition, object), {
      status: 200,
      warnings: context.warnings,
      nowMs,
    });
  const rescale = async (scale: (current: Scale) => KubeObject): Promise<ApiResponse> => {
    const change = (current: KubeObject): KubeObject => {
      const wanted = scale(scaleOf(definition, current)) as Scale;
      const errors = compileSchema(scaleDefinition.schema, { builtin: true }).validate(wanted as unknown as Json);
      const replicas = wanted.spec?.replicas ?? 0;
      if (replicas < 0) errors.push(invalid('spec.replicas', replicas, 'must be greater than or equal to 0'));
      if (errors.length > 0) throw invalidObject('autoscaling', 'Scale', target.name, errors);
      return withScale(definition, current, wanted);
    };
    return answer(await registry.update(context, target, change));
  };
  switch (call.info.verb) {
    case 'get': {
      const object = registry.read(target);
      if (!object) throw notFound(definition, target.name);
      return answer(object);
    }
    case 'update': {
      const decoded = await readBody(request, () => scaleDefinition.schema);
      const scale = expectKind(decoded?.value, 'autoscaling/v1', 'Scale');
      refuseMistyped(scaleDefinition, scale);
      alignIdentity({ ...target, definition: scaleDefinition }, scale);
      return rescale(() => scale);
    }
    case 'patch': {
      const options = {
        target: { ...target, definition: scaleDefinition },
        fieldManager: context.fieldManager,
        force: isTrue(request.query.get('force')),
        nowMs,
        level: writeOptionsOf(request).fieldValidation,
        warnings: context.warnings,
      };
      const patch = await readPatch(request, options);
      return rescale((current) => patch.apply(current));
    }
    default:
      throw methodNotAllowed();
  }
}

import { type FieldError, invalid } from '../../field-error.ts';
import type { KubeObject } from '../../meta.ts';
import type { Strategy } from '../../resource.ts';
import { ageColumn, column, nameColumn } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { ensureObject, objectAt, setDefault, textAt, textsAt } from './fields.ts';
import { coreKind, finalizerErrors } from './kind.ts';
import { namespaceSpec, namespaceStatus } from './schema/namespace.ts';
import { CORE } from './schema/package.ts';

const FINALIZER = 'kubernetes';
const NAME_LABEL = 'kubernetes.io/metadata.name';

const strategy: Strategy = {
  applyDefaults(namespace) {
    const { metadata } = namespace;
    if (metadata.name !== undefined && metadata.name !== '') {
      metadata.labels ??= {};
      metadata.labels[NAME_LABEL] = metadata.name;
    }
    const status = ensureObject(namespace, 'status');
    if (status !== undefined) setDefault(status, 'phase', 'Active');
  },
  prepareForCreate(namespace) {
    namespace['status'] = { phase: 'Active' };
    const spec = ensureObject(namespace, 'spec');
    if (spec === undefined) return;
    const finalizers = textsAt(spec, 'finalizers');
    if (!finalizers.includes(FINALIZER)) spec['finalizers'] = [...finalizers, FINALIZER];
  },
  /** Finalizers change only through their subresource. */
  prepareForUpdate(namespace, old) {
    const finalizers = objectAt(old, 'spec')?.['finalizers'];
    const spec = ensureObject(namespace, 'spec');
    if (spec === undefined) return;
    if (finalizers === undefined) delete spec['finalizers'];
    else spec['finalizers'] = finalizers;
  },
  /** And through that, nothing but finalizers changes. */
  prepareForSubresourceUpdate(subresource, namespace, old) {
    if (subresource !== 'finalize') return;
    const finalizers = textsAt(objectAt(namespace, 'spec'), 'finalizers');
    namespace['spec'] = { ...objectAt(old, 'spec'), finalizers };
    namespace['status'] = old['status'];
  },
  validate: (namespace) =>
    textsAt(objectAt(namespace, 'spec'), 'finalizers').flatMap((name) => finalizerErrors(name, 'spec.finalizers')),
  validateStatusUpdate: (namespace) => phaseErrors(namespace),
};

function phaseErrors(namespace: KubeObject): FieldError[] {
  const phase = textAt(objectAt(namespace, 'status'), 'phase');
  const isDeleting = (namespace.metadata.deletionTimestamp ?? '') !== '';
  if (isDeleting === (phase === 'Terminating') && (isDeleting || phase === 'Active')) return [];
  const detail = isDeleting
    ? "may only be 'Terminating' if `deletionTimestamp` is not empty"
    : "may only be 'Active' if `deletionTimestamp` is empty";
  return [invalid('status.Phase', phase, detail)];
}

/** core/v1 Namespace. */
export const namespaceDefinition = coreKind({
  plural: 'namespaces',
  kind: 'Namespace',
  namespaced: false,
  shortNames: ['ns'],
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  nameRule: 'dns-label',
  hasStatus: true,
  schema: objectSchema(`${CORE}.Namespace`, 'A scope for names.', {
    spec: [2, namespaceSpec, 'What the namespace is to be.'],
    status: [3, namespaceStatus, 'The observed state.'],
  }),
  subresources: [{ name: 'finalize', verbs: ['update'] }],
  selectableFields: ['status.phase'],
  columns: [
    nameColumn,
    column('Status', 'string', 'Whether the namespace is in use or being deleted.', (_spec, status) =>
      textAt(status, 'phase'),
    ),
    ageColumn,
  ],
  strategy,
});

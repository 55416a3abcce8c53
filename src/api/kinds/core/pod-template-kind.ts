import { column, containerColumns, nameColumn } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { objectAt } from './fields.ts';
import { coreKind } from './kind.ts';
import { labelsText } from './labels-text.ts';
import { applyPodTemplateDefaults, podTemplateErrors, podTemplateSpec } from './pod-template.ts';
import { CORE } from './schema/package.ts';

/** core/v1 PodTemplate: stored, nothing uses it. */
export const podTemplateDefinition = coreKind({
  plural: 'podtemplates',
  kind: 'PodTemplate',
  namespaced: true,
  hasGeneration: true,
  schema: objectSchema(`${CORE}.PodTemplate`, 'A stored template of pods.', {
    template: [2, podTemplateSpec, 'The pod to be made.'],
  }),
  columns: [
    nameColumn,
    ...containerColumns().map((each) => ({
      ...each,
      priority: 0,
      cell: (object: Parameters<NonNullable<typeof each.cell>>[0], nowMs: number) =>
        each.cell?.({ ...object, spec: { template: object['template'] } }, nowMs) ?? null,
    })),
    column('Pod Labels', 'string', 'Labels of the pods.', (_spec, _status, object) =>
      labelsText(objectAt(objectAt(object, 'template'), 'metadata'), 'labels'),
    ),
  ],
  strategy: {
    applyDefaults(object) {
      const template = objectAt(object, 'template');
      if (template !== undefined) applyPodTemplateDefaults(template);
    },
    validate: (object) => podTemplateErrors(objectAt(object, 'template') ?? {}, 'template'),
  },
});

import type { Anything } from '../support/api.ts';

/** A custom resource with all that kubectl shows of one: columns, documentation, categories, two versions. */
export function gadgetDefinition(group: string): Anything {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `gadgets.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: {
        plural: 'gadgets',
        singular: 'gadget',
        kind: 'Gadget',
        shortNames: ['gdt'],
        categories: ['all', 'tools'],
      },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
          },
          additionalPrinterColumns: [
            { name: 'Size', type: 'integer', jsonPath: '.spec.size', description: 'How big.' },
            { name: 'Colour', type: 'string', jsonPath: '.spec.colour', priority: 1 },
            { name: 'Parts', type: 'string', jsonPath: '.spec.parts[*].name' },
            { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
          ],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              description: 'A gadget does things.',
              properties: {
                spec: {
                  type: 'object',
                  description: 'What the gadget is to be.',
                  required: ['size'],
                  properties: {
                    size: { type: 'integer', minimum: 1, maximum: 10, description: 'How big the gadget is.' },
                    colour: { type: 'string', enum: ['red', 'blue'], default: 'red', description: 'Its colour.' },
                    replicas: { type: 'integer' },
                    parts: {
                      type: 'array',
                      items: {
                        type: 'object',
                        required: ['name'],
                        properties: { name: { type: 'string' }, weight: { type: 'number' } },
                      },
                    },
                  },
                },
                status: { type: 'object', properties: { replicas: { type: 'integer' }, phase: { type: 'string' } } },
              },
            },
          },
        },
        {
          name: 'v1beta1',
          served: true,
          storage: false,
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: { type: 'object', properties: { size: { type: 'integer', description: 'The former size.' } } },
              },
            },
          },
        },
      ],
    },
  };
}

import { list, listMap, message, str, time } from '../../../schema.ts';
import { CORE } from './package.ts';

/** Schemas of a namespace's states. */

export const namespaceSpec = message(`${CORE}.NamespaceSpec`, 'What a namespace is to be.', {
  finalizers: [1, list(str()), 'Keep the namespace until they are removed, through its finalize subresource.'],
});

const namespaceCondition = message(
  `${CORE}.NamespaceCondition`,
  "One aspect of a namespace's state.",
  {
    type: [1, str({ default: '' }), 'What aspect this is.'],
    status: [2, str({ default: '' }), 'True, False or Unknown.'],
    lastTransitionTime: [4, time(), 'When the status last changed.'],
    reason: [5, str(), 'One word for the cause.'],
    message: [6, str(), 'The cause in words.'],
  },
  { required: ['type', 'status'] },
);

export const namespaceStatus = message(`${CORE}.NamespaceStatus`, 'The observed state of a namespace.', {
  phase: [1, str(), 'Active or Terminating.'],
  conditions: [2, listMap(['type'], namespaceCondition), "Aspects of the namespace's state."],
});

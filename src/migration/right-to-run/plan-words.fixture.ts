import { unreachable } from '../../api/unreachable.ts';
import type { Plan, Step } from './plan.ts';

/** A plan in a line. */
export function inWords({ steps, refusal }: Plan): string {
  return refusal?.code ?? steps.map(stepInWords).join(', ');
}

function stepInWords(step: Step): string {
  switch (step.kind) {
    case 'journal':
      return step.entry.kind === 'machine' ? `note ${step.entry.event}` : `write ${step.entry.kind}`;
    case 'record': {
      const { across, epoch, holder, successor } = step.to;
      const next = successor === undefined ? '' : ` next ${successor.node}`;
      return `record ${epoch} ${holder?.node ?? 'nobody'}${next}${across === true ? ' across' : ''}`;
    }
    case 'machine':
      return step.command;
    case 'send':
      return `send ${step.message.kind}`;
    case 'stamp':
    case 'discard-images':
      return step.kind;
    default:
      return unreachable(step);
  }
}

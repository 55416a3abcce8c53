import {
  ACCELERATOR_LABEL,
  CPU_FEATURE_PREFIX,
  CPU_MODEL_PREFIX,
  CPU_VENDOR_PREFIX,
  HOST_FEATURE_PREFIX,
  HOST_MODEL_PREFIX,
  MACHINE_TYPE_PREFIX,
} from '../../api/kubevirt/node-labels.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';

/**
 * What a machine that runs needs of the node that it moves to, as labels. Each follows from a label of the node that it
 * runs on: where nodes do not say what they are like, nothing can be asked of them.
 */

type Labels = { readonly [key: string]: string };

/** The labels that the target node must have. */
export function machineNeeds(guest: VirtualMachineInstance, source: Labels): Labels {
  const accelerator = Object.hasOwn(source, ACCELERATOR_LABEL) ? source[ACCELERATOR_LABEL] : undefined;
  const type = guest.status?.machine?.type || guest.spec.domain.machine?.type || '';
  return {
    ...(accelerator === undefined ? {} : { [ACCELERATOR_LABEL]: accelerator }),
    ...same(source, CPU_VENDOR_PREFIX),
    ...where(source, MACHINE_TYPE_PREFIX + type),
    ...cpuNeeds(guest.spec.domain.cpu?.model || 'host-model', source, accelerator === 'tcg'),
  };
}

/**
 * A guest that wants the processor of its host has just that one, where it is not translated: so the target's must be of
 * the same model, and have all that the source's has beyond it.
 */
function cpuNeeds(model: string, source: Labels, isTranslated: boolean): Labels {
  if (model !== 'host-model' && model !== 'host-passthrough') return where(source, CPU_MODEL_PREFIX + model);
  if (isTranslated) return {};
  return { ...same(source, HOST_MODEL_PREFIX), ...same(source, HOST_FEATURE_PREFIX, CPU_FEATURE_PREFIX) };
}

/** The labels below a prefix that are true of the source, below the same one or another. */
function same(source: Labels, prefix: string, wanted = prefix): Labels {
  const found = Object.entries(source).filter(([key, value]) => key.startsWith(prefix) && value === 'true');
  return Object.fromEntries(found.map(([key]) => [wanted + key.slice(prefix.length), 'true']));
}

function where(source: Labels, key: string): Labels {
  return Object.hasOwn(source, key) && source[key] === 'true' ? { [key]: 'true' } : {};
}

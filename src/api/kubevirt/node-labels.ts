/** Labels by which nodes say what guests can have of them: the agent writes them, and targets are chosen by them. */

export const ACCELERATOR_LABEL = 'godwit.dev/accelerator';
/**
 * On nodes that are an agent's own: they have no kubelet, and run no containers. A taint of the same name, where they are registered with
 * it, keeps other pods away; launchers tolerate it.
 */
export const GUESTS_ONLY = 'godwit.dev/guests-only';
export const CPU_MODEL_PREFIX = 'cpu-model.node.kubevirt.io/';
export const CPU_FEATURE_PREFIX = 'cpu-feature.node.kubevirt.io/';
export const CPU_VENDOR_PREFIX = 'cpu-vendor.node.kubevirt.io/';
export const HOST_MODEL_PREFIX = 'host-model-cpu.node.kubevirt.io/';
export const HOST_FEATURE_PREFIX = 'host-model-required-features.node.kubevirt.io/';
export const MACHINE_TYPE_PREFIX = 'machine-type.node.kubevirt.io/';

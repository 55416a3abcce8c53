/** Models of processors. Which of them a guest can have is for its node to say; this is what can be known without one. */

/** What can be a label of a node, by which KubeVirt finds the nodes that have the model. */
const NAME = /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/;

/** What QEMU's models of x86 begin with; those of one family differ in what follows. */
const FAMILIES =
  /^(host|max|base|486|pentium|athlon|phenom|core|kvm|qemu|n270|Conroe|Penryn|Nehalem|Westmere|SandyBridge|IvyBridge|Haswell|Broadwell|Skylake|Cascadelake|Cooperlake|Icelake|SapphireRapids|GraniteRapids|DiamondRapids|SierraForest|ClearwaterForest|Denverton|Snowridge|Knights|EPYC|Opteron|Dhyana|YongFeng)/;

/** Whether it could be the name of a model at all. */
export function isCpuModelName(model: string): boolean {
  return NAME.test(model);
}

/** Whether it sounds like a model that there is. A QEMU that is newer than this list may have others. */
export function isFamiliarCpuModel(model: string): boolean {
  return FAMILIES.test(model);
}

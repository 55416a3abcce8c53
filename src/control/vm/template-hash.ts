import { createHash } from 'node:crypto';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { Volume } from '../../api/kubevirt/volumes.ts';

/** Enough that no two templates of one machine are taken for each other. */
const HASH_LENGTH = 16;

type Spec = VirtualMachine['spec'];
type Template = Spec['template']['spec'];

/** Machines are looked at whenever anything becomes of their guests, and hardly ever are they other machines then. */
const known = { live: new WeakMap<Spec, string>(), full: new WeakMap<Spec, string>() };

/** What a guest is made from, in short, but for what it can be given while it runs; the order of fields means nothing. */
export function templateHash({ spec }: VirtualMachine): string {
  // Never the same as one with all fields, of whatever template.
  return onceOf(known.live, spec, () => hashOf(spec, { live: withoutLiveFields(spec.template.spec) }));
}

/** The same with all fields, as guests were marked by former versions. */
export function fullTemplateHash({ spec }: VirtualMachine): string {
  return onceOf(known.full, spec, () => hashOf(spec, spec.template.spec));
}

function onceOf(hashes: WeakMap<Spec, string>, spec: Spec, make: () => string): string {
  const hash = hashes.get(spec) ?? make();
  hashes.set(spec, hash);
  return hash;
}

function hashOf({ instancetype, preference }: Spec, template: object | undefined): string {
  const size = [instancetype?.kind, instancetype?.name, preference?.kind, preference?.name];
  const text = JSON.stringify([template, size], inOrder);
  return createHash('sha256').update(text).digest('hex').slice(0, HASH_LENGTH);
}

function withoutLiveFields(template: Template): object | undefined {
  if (!template) return template;
  const { cpu, memory, ...domain } = template.domain;
  const { sockets: _sockets, ...processor } = cpu ?? {};
  const { guest: _guest, ...otherMemory } = memory ?? {};
  return {
    ...template,
    domain: { ...domain, ...unlessEmpty('cpu', processor), ...unlessEmpty('memory', otherMemory) },
    ...(template.volumes ? { volumes: template.volumes.map(withoutClaim) } : {}),
  };
}

function unlessEmpty(name: string, fields: object): object {
  return Object.keys(fields).length > 0 ? { [name]: fields } : {};
}

function withoutClaim(volume: Volume): object {
  const { persistentVolumeClaim, dataVolume, ...rest } = volume;
  if (persistentVolumeClaim) return { ...rest, persistentVolumeClaim: { ...persistentVolumeClaim, claimName: '' } };
  return dataVolume ? { ...rest, dataVolume: { ...dataVolume, name: '' } } : volume;
}

function inOrder(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

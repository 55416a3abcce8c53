import { HypervisorError, type MachineMemory } from '../hypervisor.ts';
import { isRecord, type QemuVersion } from './qmp-message.ts';
import type { Execute } from './qemu-processors.ts';
import { losesWritesOfAlignedRam } from './ram-size.ts';

/** Names of a piece of plugged memory: of what holds it, and of what the guest sees. */
export function memoryPiece(index: number): { readonly backend: string; readonly device: string } {
  return { backend: `plugged-memory-${index}`, device: `plugged-dimm-${index}` };
}

/**
 * Memory that was plugged into a QEMU. Pieces are numbered, and QEMU puts each behind the one before it: a machine that is
 * started with as many has them at the same addresses.
 */
export class QemuMemory implements MachineMemory {
  readonly #execute: Execute;
  readonly #version: () => QemuVersion;

  constructor(execute: Execute, version: () => QemuVersion) {
    this.#execute = execute;
    this.#version = version;
  }

  async plugged(): Promise<number> {
    const devices = await this.#execute('query-memory-devices');
    return Array.isArray(devices) ? devices.filter((each) => isRecord(each) && each['type'] === 'dimm').length : 0;
  }

  async pluggedBytes(): Promise<number> {
    const answer = await this.#execute('query-memory-size-summary');
    const bytes = isRecord(answer) ? answer['plugged-memory'] : undefined;
    return typeof bytes === 'number' ? bytes : 0;
  }

  async plug(count: number, unitBytes: number): Promise<void> {
    for (let index = await this.plugged(); index < count; index++) {
      const { backend, device } = memoryPiece(index);
      await this.#make(backend, unitBytes);
      await this.#execute('device_add', { driver: 'pc-dimm', id: device, memdev: backend });
    }
  }

  /** Every piece has a size that QEMU before 9.0 loses writes of, where it translates: Linux takes no other. */
  async isTracked(): Promise<boolean> {
    if (!losesWritesOfAlignedRam(this.#version(), 'tcg') || (await this.plugged()) === 0) return true;
    const answer = await this.#execute('query-kvm');
    return isRecord(answer) && answer['enabled'] === true;
  }

  /** It may be there already, from somebody who did not get further. */
  async #make(id: string, size: number): Promise<void> {
    try {
      await this.#execute('object-add', { 'qom-type': 'memory-backend-ram', id, size });
    } catch (error) {
      const isThere = error instanceof HypervisorError && /duplicate property|already exists/i.test(error.message);
      if (!isThere) throw error;
    }
  }
}

import { placeName } from '../compare.ts';
import type { DevicePlace } from '../machine.ts';
import { isRecord } from './qmp-message.ts';
import type { Execute } from './qemu-processors.ts';

/** What QEMU says of one of its block devices, by the names that `devices` has given them. */
export interface BlockNode {
  /** How large whoever uses it sees it; undefined where QEMU does not say. */
  readonly sizeBytes: number | undefined;
  readonly isReadOnly: boolean;
  /** What it was opened with. */
  readonly driver: string;
  readonly path: string;
  readonly isDirect: boolean;
}

/** All of them, by name. */
export async function blockNodes(execute: Execute): Promise<ReadonlyMap<string, BlockNode>> {
  const answer = await execute('query-named-block-nodes', { flat: true });
  const nodes = new Map<string, BlockNode>();
  for (const node of Array.isArray(answer) ? answer : []) {
    if (!isRecord(node) || typeof node['node-name'] !== 'string') continue;
    const size = isRecord(node['image']) ? node['image']['virtual-size'] : undefined;
    nodes.set(node['node-name'], {
      sizeBytes: typeof size === 'number' ? size : undefined,
      isReadOnly: node['ro'] === true,
      driver: textOf(node['drv']),
      path: textOf(node['file']),
      isDirect: isRecord(node['cache']) && node['cache']['direct'] === true,
    });
  }
  return nodes;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

const NAME = /^disk-(virtio|sata|virtio-mmio)-(\d+)$/;

/** The place of the disk, or of the drive, that a node is of; undefined for nodes that are of none. */
export function placeOfNode(name: string): DevicePlace | undefined {
  const [, bus, at] = NAME.exec(name) ?? [];
  return bus === undefined ? undefined : { bus: bus as DevicePlace['bus'], at: Number(at) };
}

/**
 * Lets disks be filled from outside that their guest can only read: that stays so, since their devices were made when they
 * could not be written, and are not told. Nothing is done to those that can be written.
 */
export async function makeFillable(execute: Execute, names: readonly string[]): Promise<void> {
  const nodes = await blockNodes(execute);
  for (const name of names) await reopen(execute, nodes, name);
}

async function reopen(execute: Execute, nodes: ReadonlyMap<string, BlockNode>, name: string): Promise<void> {
  const [node, file] = [nodes.get(name), nodes.get(`${name}-file`)];
  if (!node?.isReadOnly || !file) return;
  const shared = {
    cache: { direct: node.isDirect, 'no-flush': false },
    'read-only': false,
    discard: 'unmap',
  };
  const part = node.driver === 'raw' && node.sizeBytes !== file.sizeBytes ? { size: node.sizeBytes } : {};
  await execute('blockdev-reopen', {
    options: [
      { driver: file.driver, 'node-name': `${name}-file`, filename: file.path, ...shared },
      { driver: node.driver, 'node-name': name, file: `${name}-file`, ...part, ...shared },
    ],
  });
}

/** How large the guest sees its disks and drives, by the names of their places. */
export async function diskSizes(execute: Execute): Promise<ReadonlyMap<string, number>> {
  const sizes = new Map<string, number>();
  for (const [name, { sizeBytes }] of await blockNodes(execute)) {
    const place = placeOfNode(name);
    if (place && sizeBytes !== undefined) sizes.set(placeName(place), sizeBytes);
  }
  return sizes;
}

import { describe, expect, it } from 'vitest';
import { checkKubeletNode } from './kubelet-node.ts';

describe("the agent of a kubelet's node", () => {
  const check = (options: object, pid = 4711) => checkKubeletNode(options, '/data', pid);
  it.each([
    ['in a process namespace of its own', {}, 1, 'hostPID'],
    ['with images that launcher pods do not see', { images: '/images' }, 4711, '--images'],
    ['with volumes that they do not see', { shared: '/data/../shared' }, 4711, '--shared'],
    ['with a directory that only looks alike', { shared: '/data-too' }, 4711, '--shared'],
  ])('is refused %s', (_, options, pid, named) => expect(() => check(options, pid)).toThrow(named));
  it('works with what is below its own directory', () => {
    check({});
    check({ images: '/data/images', shared: '/data/nfs/shared' });
  });
});

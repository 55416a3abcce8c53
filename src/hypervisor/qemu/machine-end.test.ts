import { describe, expect, it } from 'vitest';
import { machineEnd } from './machine-end.ts';

const nothing = {
  exit: { code: undefined, signal: undefined },
  hasGuestShutDown: false,
  wasToldToQuit: false,
  log: '',
};
const code = (value: number) => ({ exit: { code: value, signal: undefined } });

describe('why a machine is gone', () => {
  it.each([
    ['a guest that shut down', { ...code(0), hasGuestShutDown: true, wasToldToQuit: true }, 'GuestShutDown'],
    ['one whose QEMU was killed after', { ...nothing, hasGuestShutDown: true }, 'GuestShutDown'],
    ['an order', { ...code(0), wasToldToQuit: true }, 'Quit'],
    ['an order, seen by nobody', { wasToldToQuit: true }, 'Quit'],
    ['a signal', { exit: { code: undefined, signal: 'SIGSEGV' } }, 'Killed'],
    ['a signal that is an order', { ...code(0), log: 'qemu: terminating on signal 15 from pid 1\n' }, 'Killed'],
    ['the same, seen by nobody', { log: 'qemu: terminating on signal 15 from pid 1\n' }, 'Killed'],
    ['a failure', { ...code(1), log: 'one\ntwo\n' }, 'Failed'],
    ['a failure while it was told to quit', { ...code(1), wasToldToQuit: true }, 'Failed'],
    ['itself', code(0), 'Quit'],
    ['what nobody saw', {}, 'Unknown'],
  ])('is told: %s', (_, evidence, reason) => {
    expect(machineEnd({ ...nothing, ...evidence }).reason).toBe(reason);
  });

  it('is told with the last words, and no more than a screen of them', () => {
    const log = `${Array.from({ length: 100 }, (_, index) => `line ${index}`).join('\n')}\n\n`;
    const end = machineEnd({ ...nothing, ...code(1), log });
    expect(end.message).toBe('QEMU ended with exit code 1; its last words: line 99');
    expect(end.log).toHaveLength(20);
    expect(end.log[0]).toBe('line 80');
  });
});

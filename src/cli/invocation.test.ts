import { expect, it } from 'vitest';
import { asTyped, commandName } from './invocation.ts';

it.each([
  ['/usr/bin/godwit', 'godwit'],
  ['/repo/dist/cli/main.js', 'godwit'],
  ['/usr/bin/kubectl-godwit', 'kubectl godwit'],
  [undefined, 'godwit'],
])('called as %s it is %s', (program, name) => expect(commandName(program ?? '')).toBe(name));

it('speaks of itself by the name that was typed', () => {
  const text = "Usage: godwit migrate; 'godwit stop', kubectl godwit why, kubevirt/godwit-migration-slots";
  expect(asTyped(text, '/usr/bin/godwit')).toBe(text);
  expect(asTyped(text, '/usr/bin/kubectl-godwit')).toBe(
    "Usage: kubectl godwit migrate; 'kubectl godwit stop', kubectl godwit why, kubevirt/godwit-migration-slots",
  );
});

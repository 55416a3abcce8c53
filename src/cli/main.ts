#!/usr/bin/env node
import { realEnv } from '../env/real.ts';
import { accessFailure } from './access-failure.ts';
import { withPlainBooleans } from './boolean-arguments.ts';
import { commandTree } from './completion/command-tree.ts';
import { NAMES_COMMAND } from './completion/scripts.ts';
import { UserError } from './failure.ts';
import { asTyped, commandName } from './invocation.ts';
import { program } from './program.ts';

/** Runs the `godwit` command. docs/commands.md says what its exit codes mean. */

const [first, ...typed] = process.argv.slice(2);
if (first === NAMES_COMMAND) {
  const { printNames } = await import('./completion/print-names.ts');
  await printNames(commandTree(program), typed, realEnv('error'), (line) => void process.stdout.write(`${line}\n`));
  process.exit(0);
}

try {
  await program.parseAsync(withPlainBooleans(process.argv.slice(2), program), { from: 'user' });
  process.exit(0);
} catch (error) {
  const { exitCode, code, message, stack } = error as {
    exitCode?: number;
    code?: unknown;
    message: string;
    stack?: string;
  };
  // Commander has already printed its own complaints, and help is no failure.
  if (typeof code === 'string' && code.startsWith('commander.')) process.exit(exitCode === 0 ? 0 : 2);
  const told = accessFailure(error) ?? error;
  const text = told instanceof UserError ? asTyped(told.message) : (stack ?? message);
  process.stderr.write(`${commandName()}: ${text}\n`);
  process.exit(told instanceof UserError ? told.exitCode : 1);
}

#!/usr/bin/env node
import { accessFailure } from './access-failure.ts';
import { withPlainBooleans } from './boolean-arguments.ts';
import { UserError } from './failure.ts';
import { asTyped, commandName } from './invocation.ts';
import { program } from './program.ts';

/** Runs the `godwit` command. docs/commands.md says what its exit codes mean. */

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

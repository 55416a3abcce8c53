#!/usr/bin/env node
import { realEnv } from '../env/real.ts';
import { accessFailure } from './access-failure.ts';
import { withPlainBooleans } from './boolean-arguments.ts';
import { commandTree } from './completion/command-tree.ts';
import { NAMES_COMMAND } from './completion/scripts.ts';
import { UserError } from './failure.ts';
import { asTyped, commandName } from './invocation.ts';
import { withOptionsBehind } from './leading-options.ts';
import { program } from './program.ts';
import { endWhenUnread, endWith } from './unread-output.ts';

/** Runs the `godwit` command. docs/commands.md says what its exit codes mean. */

/** What serves is not ended by who no longer reads what it says; nor is a tour, which leaves things as they were. */
const LASTING: ReadonlySet<string> = new Set(['up', 'agent', 'controllers', 'extension', 'sync', 'launcher', 'tour']);

let goesOn = false;
endWhenUnread(() => goesOn);
program.hook('preAction', (_program, command) => void (goesOn = LASTING.has(command.name())));

const [first, ...typed] = process.argv.slice(2);
if (first === NAMES_COMMAND) {
  const { printNames } = await import('./completion/print-names.ts');
  await printNames(commandTree(program), typed, realEnv('error'), (line) => void process.stdout.write(`${line}\n`));
  await endWith(0);
}

try {
  const args = withPlainBooleans(withOptionsBehind(process.argv.slice(2), program), program);
  await program.parseAsync(args, { from: 'user' });
  await endWith(0);
} catch (error) {
  const { exitCode, code, message, stack } = error as {
    exitCode?: number;
    code?: unknown;
    message: string;
    stack?: string;
  };
  // Commander has already printed its own complaints, and help is no failure.
  if (typeof code === 'string' && code.startsWith('commander.')) await endWith(exitCode === 0 ? 0 : 2);
  const told = accessFailure(error) ?? error;
  const text = told instanceof UserError ? asTyped(told.message) : (stack ?? message);
  process.stderr.write(`${commandName()}: ${text}\n`);
  await endWith(told instanceof UserError ? told.exitCode : 1);
}

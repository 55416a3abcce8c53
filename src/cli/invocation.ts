import { basename } from 'node:path';

/** How the command was called: by its own name, or by kubectl, of which it is a plugin then. */

/** What kubectl looks for on the path. */
const PLUGIN = 'kubectl-godwit';

/** Whether kubectl called it. */
export function isKubectlPlugin(program: string | undefined = process.argv[1]): boolean {
  return basename(program ?? '').startsWith(PLUGIN);
}

/** What was typed to call it. */
export function commandName(program: string | undefined = process.argv[1]): string {
  return isKubectlPlugin(program) ? 'kubectl godwit' : 'godwit';
}

/** Text that speaks of the command, by the name that was typed. */
export function asTyped(text: string, program: string | undefined = process.argv[1]): string {
  return isKubectlPlugin(program)
    ? text.replaceAll(/(?<![\w-]|kubectl )godwit (?=\S)/g, `${commandName(program)} `)
    : text;
}

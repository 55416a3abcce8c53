import { Argument, Command } from 'commander';
import { commandTree } from './command-tree.ts';
import { completionScript, type Shell, SHELLS } from './scripts.ts';

/** `godwit completion SHELL`: a script that completes all that the program knows. */
export function completionCommand(program: Command, print: (line: string) => void): Command {
  return new Command('completion')
    .description('Print a script that completes commands and options in a shell.')
    .addArgument(new Argument('<shell>', 'which shell').choices(SHELLS))
    .addHelpText(
      'after',
      '\nExample:\n  source <(godwit completion bash)\n  godwit completion zsh > ~/.zfunc/_godwit\n  godwit completion fish > ~/.config/fish/completions/godwit.fish',
    )
    .action((shell: Shell) => print(completionScript(shell, commandTree(program))));
}

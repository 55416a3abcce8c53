import { Command, Option } from 'commander';
import { parseTimeout } from './duration.ts';

/**
 * Options that kubectl and virtctl have for all of their commands, and so have ours that talk to a cluster. There are many, and
 * few are in a hurry to read them: they are shown once, by `godwit options`, as kubectl and virtctl do.
 */

/** Where they are explained. */
const REFERENCE = "\nkubectl's options for all commands (--as, --server, --token, …): see 'godwit options'";

function withOthers(group: string, before: readonly string[] = []): readonly string[] {
  return [...before, group];
}

/** New ones, since commander's are of one command each. */
export function kubectlOptions(): Option[] {
  return [
    new Option('--as <user>', 'be treated as this user, if you may'),
    new Option('--as-group <group>', 'be treated as a member of this group, too; may be given several times').argParser(
      withOthers,
    ),
    new Option('--as-uid <uid>', 'be treated as the user of this UID'),
    new Option('-s, --server <url>', 'where the API server is'),
    new Option(
      '--tls-server-name <name>',
      "the name that the server's certificate must carry (default: as in its URL)",
    ),
    new Option('--certificate-authority <file>', "whose signature the server's certificate must carry"),
    new Option('--insecure-skip-tls-verify', 'talk to whoever answers: nobody checks that it is the server'),
    new Option('--token <token>', 'who you are: a bearer token'),
    new Option('--client-certificate <file>', 'who you are: a certificate, with --client-key'),
    new Option('--client-key <file>', 'the key of --client-certificate'),
    new Option('--cluster <name>', 'the cluster of the kubeconfig to use (default: that of the context)'),
    new Option('--user <name>', 'the user of the kubeconfig to be (default: that of the context)'),
    new Option(
      '--request-timeout <duration>',
      'how long one request may wait for its answer, such as 10s (default: about a minute)',
    ).argParser(parseTimeout),
  ];
}

/** Adds them to a command, but for those of the same name that it has itself. */
export function withKubectlOptions(command: Command, own: readonly string[] = []): Command {
  for (const option of kubectlOptions()) if (!own.includes(option.long ?? '')) command.addOption(option.hideHelp());
  return command.addHelpText('after', REFERENCE);
}

/** `godwit options`. */
export function optionsCommand(print: (line: string) => void): Command {
  return new Command('options')
    .description("Print kubectl's options, which all commands take that talk to a cluster.")
    .addHelpText('after', '\nExample:\n  godwit options\n  godwit status --as jane --request-timeout 5s')
    .action(() => {
      const all = kubectlOptions();
      const flags = all.map((option) => (option.short === undefined ? `    ${option.flags}` : option.flags));
      const width = Math.max(...flags.map(({ length }) => length));
      print('These go before what the kubeconfig says, in all commands that talk to a cluster:');
      print('');
      for (const [at, { description }] of all.entries()) print(`  ${(flags[at] ?? '').padEnd(width)}  ${description}`);
    });
}

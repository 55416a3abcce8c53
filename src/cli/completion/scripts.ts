import type { CommandNode, OptionNode } from './command-tree.ts';

/**
 * Scripts that complete commands in shells; pure. Each is a function of the tree. For names of the cluster they ask the program
 * itself (`NAMES_COMMAND`), which prints nothing where it cannot tell.
 */

/** Prints names that can follow the words behind it; for these scripts alone. */
export const NAMES_COMMAND = '__names';

export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/** The script of a shell. */
export function completionScript(shell: Shell, root: CommandNode): string {
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](root);
}

interface Placed {
  /** Names from the root on, without it. */
  readonly path: readonly string[];
  readonly node: CommandNode;
}

/** All commands with their places, also by their other names. */
function placed(node: CommandNode, path: readonly string[] = []): Placed[] {
  return [
    { path, node },
    ...node.children.flatMap((child) =>
      [child.name, ...child.aliases].flatMap((name) => placed(child, [...path, name])),
    ),
  ];
}

function flagsOf({ long, short }: OptionNode): string[] {
  return [long, short].filter((flag) => flag !== undefined);
}

function namesOf({ children, words }: CommandNode): string[] {
  return [...children.flatMap(({ name, aliases }) => [name, ...aliases]), ...words];
}

/** In single quotes, as shells of the Bourne kind read them. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function bashScript(root: CommandNode): string {
  const all = placed(root);
  const cases = all.map(({ path, node }) => {
    const flags = node.options.flatMap(flagsOf).join(' ');
    return `    ${quoted(path.join(' '))}) words=${quoted(namesOf(node).join(' '))} flags=${quoted(flags)} files=${node.takesFiles ? 'yes' : ''} names=${node.names.length > 0 ? 'yes' : ''} ;;`;
  });
  const known = all.filter(({ path }) => path.length > 0).map(({ path }) => quoted(path.join(' ')));
  const valued = uniqueOptions(all);
  return `# bash completion for ${root.name}; load it with: source <(${root.name} completion bash)
_${root.name}() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} path='' each words='' flags='' files='' names=''
  for each in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$each" in
      ${known.join('|')}) path="\${path:+$path }$each" ;;
    esac
  done
  COMPREPLY=()
  case "$before" in
${valued.map((option) => `    ${flagsOf(option).join('|')}) ${bashValues(option)}; return ;;`).join('\n')}
  esac
  case "$path" in
${cases.join('\n')}
  esac
  if [[ -n $names && $word != -* ]]; then
    names=$("\${COMP_WORDS[0]}" ${NAMES_COMMAND} "\${COMP_WORDS[@]:1:COMP_CWORD-1}" 2> /dev/null)
    [[ -n $words && " $words " == *" $before "* ]] && words=''
    words="$words $names"
  fi
  if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$word"))
  elif [[ -n $words ]]; then COMPREPLY=($(compgen -W "$words" -- "$word"))
  elif [[ -n $files ]]; then compopt -o filenames; COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -F _${root.name} ${root.name}`;
}

function bashValues({ choices, values }: OptionNode): string {
  if (choices.length > 0) return `COMPREPLY=($(compgen -W ${quoted(choices.join(' '))} -- "$word"))`;
  if (values === 'other') return ':';
  return `compopt -o filenames; COMPREPLY=($(compgen -${values === 'files' ? 'f' : 'd'} -- "$word"))`;
}

/** Options that something follows, each once: those of one name mean the same everywhere, but for what may follow. */
function uniqueOptions(all: readonly Placed[]): OptionNode[] {
  const found = new Map<string, OptionNode>();
  for (const option of all.flatMap(({ node }) => node.options)) {
    const key = flagsOf(option).join('|');
    const known = found.get(key);
    const choices = [...new Set([...(known?.choices ?? []), ...option.choices])];
    if (option.takesValue) found.set(key, { ...option, choices });
  }
  return [...found.values()];
}

function zshScript(root: CommandNode): string {
  const all = placed(root);
  const cases = all.map(({ path, node }) => {
    const words = [
      ...node.children.map(({ name, description }) => described(name, description)),
      ...node.words.map((word) => described(word, '')),
    ];
    const flags = node.options.flatMap((option) => flagsOf(option).map((flag) => described(flag, option.description)));
    return `    ${quoted(path.join(' '))}) words_=(${words.join(' ')}); flags=(${flags.join(' ')}); files=${node.takesFiles ? 'yes' : "''"}; names=${node.names.length > 0 ? 'yes' : "''"} ;;`;
  });
  const known = all.filter(({ path }) => path.length > 0).map(({ path }) => quoted(path.join(' ')));
  return `#compdef ${root.name}
# zsh completion for ${root.name}; load it with: source <(${root.name} completion zsh)
_${root.name}() {
  local path_='' each files='' names=''
  local -a words_ flags
  for each in "\${(@)words[2,CURRENT-1]}"; do
    case "\${path_:+$path_ }$each" in
      ${known.join('|')}) path_="\${path_:+$path_ }$each" ;;
    esac
  done
  case "\${words[CURRENT-1]}" in
${uniqueOptions(all)
  .map((option) => `    ${flagsOf(option).join('|')}) ${zshValues(option)}; return ;;`)
  .join('\n')}
  esac
  case "$path_" in
${cases.join('\n')}
  esac
  if [[ -n $names && "\${words[CURRENT]}" != -* ]]; then
    (( \${words_[(Ie)\${words[CURRENT-1]}]} )) && words_=()
    words_+=(\${(f)"$(\${words[1]} ${NAMES_COMMAND} \${words[2,CURRENT-1]} 2> /dev/null)"})
  fi
  if [[ "\${words[CURRENT]}" == -* ]]; then _describe option flags
  elif (( \${#words_} )); then _describe command words_
  elif [[ -n $files ]]; then _files
  fi
}
compdef _${root.name} ${root.name}`;
}

function zshValues({ choices, values }: OptionNode): string {
  if (choices.length > 0) return `compadd -- ${choices.join(' ')}`;
  if (values === 'other') return ':';
  return values === 'files' ? '_files' : '_files -/';
}

/** A word with what it is, as _describe reads it: a colon ends the word. */
function described(word: string, description: string): string {
  const name = word.replaceAll(':', '\\:');
  return quoted(description === '' ? name : `${name}:${description}`);
}

function fishScript(root: CommandNode): string {
  const all = placed(root);
  const known = all.filter(({ path }) => path.length > 0).map(({ path }) => quoted(path.join(' ')));
  const lines = all.flatMap(({ path, node }) => {
    const at = `-n ${quoted(`__${root.name}_at ${quotedForFish(path.join(' '))}`)}`;
    const words = [...node.children, ...node.words.map((name) => ({ name, description: '' }))];
    return [
      ...words.map(
        ({ name, description }) => `complete -c ${root.name} -f ${at} -a ${quoted(name)} -d ${fishQuoted(description)}`,
      ),
      ...node.options.map((option) => `complete -c ${root.name} ${at} ${fishOption(option)}`),
      ...(node.names.length > 0 ? [`complete -c ${root.name} -f ${at} -a '(__${root.name}_names)'`] : []),
      ...(node.takesFiles ? [`complete -c ${root.name} -F ${at}`] : []),
    ];
  });
  return `# fish completion for ${root.name}; load it with: ${root.name} completion fish | source
function __${root.name}_path
  set -l path
  for each in (commandline -opc)[2..]
    set -l next (string join ' ' $path $each)
    contains -- $next ${known.join(' ')}; and set path $next
  end
  printf '%s\\n' "$path"
end
function __${root.name}_at
  set -l now (__${root.name}_path)
  test "$now" = "$argv[1]"
end
function __${root.name}_names
  set -l typed (commandline -opc)
  $typed[1] ${NAMES_COMMAND} $typed[2..] 2> /dev/null
end
complete -c ${root.name} -f
${lines.join('\n')}`;
}

function fishOption({ long, short, description, takesValue, choices, values }: OptionNode): string {
  const name = [
    ...(long === undefined ? [] : [`-l ${long.replace(/^--/, '')}`]),
    ...(short === undefined ? [] : [`-s ${short.replace(/^-/, '')}`]),
  ].join(' ');
  const value = !takesValue
    ? ''
    : choices.length > 0
      ? ` -x -a ${quoted(choices.join(' '))}`
      : values === 'other'
        ? ' -x'
        : ' -r -F';
  return `${name}${value} -d ${fishQuoted(description)}`;
}

/** In single quotes, as fish reads them. */
function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", `\\'`)}'`;
}

/** Inside of what is in single quotes already. */
function quotedForFish(text: string): string {
  return `"${text}"`;
}

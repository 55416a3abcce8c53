import { spawnSync } from 'node:child_process';
import { Command, Option } from 'commander';
import { describe, expect, it } from 'vitest';
import { commandTree } from './command-tree.ts';
import { completionScript } from './scripts.ts';

function sample(): Command {
  const program = new Command('godwit').description('All of it.');
  program
    .command('pause')
    .description("Hold it: it doesn't go on.")
    .usage('[options] [vm|vmi] <name>')
    .argument('<vm>')
    .option('-n, --namespace <namespace>', 'where it is');
  const image = program.command('image').description('Images.');
  image
    .command('list')
    .alias('ls')
    .description('Show them.')
    .addOption(new Option('-o, --output <format>', 'how').choices(['json', 'yaml']));
  image.command('import').description('Take one in.').argument('<file>').option('--kernel <file>', 'a kernel');
  program.command('secret', { hidden: true });
  return program;
}

const tree = commandTree(sample());

describe('the tree of commands', () => {
  it('is what commander knows', () => {
    expect(tree.children.map(({ name }) => name)).toEqual(['pause', 'image']);
    const [pause, image] = tree.children;
    expect(pause).toMatchObject({ words: ['vm', 'vmi'], names: ['vm', 'vmi'], takesFiles: false });
    expect(image?.children.map(({ name, aliases, takesFiles }) => [name, aliases, takesFiles])).toEqual([
      ['list', ['ls'], false],
      ['import', [], true],
    ]);
    expect(image?.children[0]?.options[0]).toMatchObject({ long: '--output', short: '-o', choices: ['json', 'yaml'] });
  });
});

describe('bash', () => {
  const script = completionScript('bash', tree);

  /** What it offers after these words; the last one is being typed. */
  function offered(this: { readonly before: string } | void, ...words: readonly string[]): string[] {
    const typed = ['godwit', ...words].map((word) => `'${word}'`).join(' ');
    const { stdout, stderr } = spawnSync('bash', ['--norc'], {
      input: `compopt() { :; }\n${this?.before ?? 'godwit() { :; }'}\n${script}\nCOMP_WORDS=(${typed}); COMP_CWORD=${words.length}; _godwit; printf '%s\\n' "\${COMPREPLY[@]}"\n`,
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    return stdout.split('\n').filter((line) => line !== '');
  }

  it('offers names of the cluster, for which it asks the program itself', () => {
    const godwit = 'godwit() { echo "asked:$*" | tr " " ":"; echo web; }';
    const say = (...words: readonly string[]): string[] => offered.call({ before: godwit }, ...words);
    expect(say('pause', 'w')).toEqual(['web']);
    expect(say('pause', '')).toEqual(['vm', 'vmi', 'asked:__names:pause', 'web']);
    expect(say('pause', '-n', 'shop', 'vm', '')).toEqual(['asked:__names:pause:-n:shop:vm', 'web']);
    expect(say('pause', '-')).not.toContain('web');
    expect(say('image', 'list', '')).toEqual([]);
  });

  it.each<[string, string[], string[]]>([
    ['commands', [''], ['pause', 'image']],
    ['commands that begin so', ['pa'], ['pause']],
    ['commands of commands', ['image', ''], ['list', 'ls', 'import']],
    ['kinds', ['pause', 'v'], ['vm', 'vmi']],
    ['options', ['pause', '--na'], ['--namespace']],
    ['what may follow an option', ['image', 'list', '-o', ''], ['json', 'yaml']],
    ['the same by another name', ['image', 'ls', '--output', 'y'], ['yaml']],
    ['nothing where anything may follow', ['pause', '-n', ''], []],
    ['options after arguments', ['pause', 'vm', 'web', '--'], ['--namespace', '--help']],
  ])('offers %s', (_, words, expected) => expect(offered(...words)).toEqual(expected));
});

describe('zsh and fish', () => {
  it('quote what people wrote', () => {
    expect(completionScript('zsh', tree)).toContain(`'pause:Hold it: it doesn'\\''t go on.'`);
    expect(completionScript('fish', tree)).toContain(`-a 'pause' -d 'Hold it: it doesn\\'t go on.'`);
  });

  it('know what may follow an option', () => {
    expect(completionScript('zsh', tree)).toContain('--output|-o) compadd -- json yaml; return ;;');
    expect(completionScript('fish', tree)).toContain("-l output -s o -x -a 'json yaml' -d 'how'");
    expect(completionScript('fish', tree)).toContain("-l kernel -r -F -d 'a kernel'");
  });
});

import { Command } from 'commander';
import { expect, it } from 'vitest';
import { withPlainBooleans } from './boolean-arguments.ts';

const program = new Command('godwit');
program.command('stop').argument('<vm>').option('--force').option('--dry-run').option('--grace-period <seconds>');
const image = program.command('image');
image.command('list').alias('ls').option('--all').option('--name <name>');

it.each<[string, string, string]>([
  ['what is plain', 'stop a --force --grace-period=0', 'stop a --force --grace-period=0'],
  ['what is true', 'stop a --force=true --dry-run=1', 'stop a --force --dry-run'],
  ['what is false', 'stop a --force=false --dry-run=F', 'stop a'],
  ['what is neither', 'stop a --force=perhaps', 'stop a --force=perhaps'],
  ['options with values', 'image ls --name=true --all=true', 'image ls --name=true --all'],
  ['options of other commands', 'image list --force=true', 'image list --force=true'],
  ['what is no option', 'stop -- --force=true', 'stop -- --force=true'],
])('understands %s', (_, typed, plain) => {
  expect(withPlainBooleans(typed.split(' '), program)).toEqual(plain.split(' '));
});

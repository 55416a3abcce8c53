import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type Finished, runCli } from '../support/cli.ts';

/** `godwit image`, as a user types it; what it does is tested beside its code. */

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-images-'));
  writeFileSync(join(directory, 'disk.img'), Buffer.alloc(1024 * 1024, 1));
  writeFileSync(join(directory, 'vmlinuz'), 'kernel');
});
afterAll(() => rmSync(directory, { recursive: true }));

const image = (...args: readonly string[]): Promise<Finished> =>
  runCli(['image', ...args, ...(args.includes('--help') ? [] : ['--data-dir', join(directory, 'data')])]);

describe('godwit image', () => {
  it('imports, lists and removes', async () => {
    const imported = await image('import', 'quay.io/shop/web:1', join(directory, 'disk.img'));
    expect(imported).toMatchObject({ code: 0, stderr: '' });
    expect(imported.stdout).toMatch(
      /^Imported quay\.io\/shop\/web:1 \(sha256:[0-9a-f]{12}, 1\.0 MiB\): \/disk\/disk\.img\.\n$/,
    );
    const kernel = await image('import', 'linux', '--kernel', join(directory, 'vmlinuz'));
    expect(kernel.stdout).toMatch(/^Imported linux:latest /);
    expect((await image('list')).stdout.split('\n').map((line) => line.split(' ')[0])).toEqual([
      'NAME',
      'linux:latest',
      'quay.io/shop/web:1',
      '',
    ]);
    const json = JSON.parse((await image('list', '-o', 'json')).stdout) as { name: string; digest: string }[];
    expect(json.map(({ name }) => name)).toEqual(['linux:latest', 'quay.io/shop/web:1']);
    expect(parse((await image('list', '-o', 'yaml')).stdout)).toEqual(json);
    const { stdout: wide } = await image('ls', '-o', 'wide');
    for (const { digest } of json) expect(wide).toContain(digest);
    expect(await image('rm', 'linux', 'quay.io/shop/web:1')).toMatchObject({
      code: 0,
      stdout: 'Removed linux.\nRemoved quay.io/shop/web:1.\n',
    });
    expect((await image('list')).stdout).toMatch(/^There are no images/);
  });

  it('says what is wrong in one sentence', async () => {
    expect(await image('import', 'web', join(directory, 'missing'))).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^godwit: .*missing cannot be read \(ENOENT[^\n]*\); give the path [^\n]*\n$/,
      ) as string,
    });
    expect(await image('import', 'web')).toMatchObject({
      code: 2,
      stderr: 'godwit: give either a file, or --kernel and perhaps --initrd\n',
    });
    expect(await image('rm', 'web')).toMatchObject({
      code: 1,
      stderr: "godwit: there is no image web; 'godwit image list' shows all there are\n",
    });
    expect((await image('rm')).code).toBe(2);
  });
});

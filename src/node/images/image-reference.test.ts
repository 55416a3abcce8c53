import { describe, expect, it } from 'vitest';
import { imageName, parseImageReference } from './image-reference.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;

describe('names of images', () => {
  it.each([
    ['web', 'web:latest'],
    ['web:1.2', 'web:1.2'],
    ['shop/web', 'shop/web:latest'],
    ['docker.io/web', 'web:latest'],
    ['docker.io/library/web:1', 'web:1'],
    ['docker.io/shop/web:1', 'shop/web:1'],
    ['quay.io/shop/web', 'quay.io/shop/web:latest'],
    ['localhost/web', 'localhost/web:latest'],
    ['registry:5000/a/b/c:x_1', 'registry:5000/a/b/c:x_1'],
    [`quay.io/web@${DIGEST}`, 'quay.io/web:latest'],
    [`quay.io/web:1@${DIGEST}`, 'quay.io/web:1'],
  ])('%s is %s', (text, name) => expect(imageName(parseImageReference(text))).toBe(name));

  it.each([
    '',
    'Web',
    'a//b',
    '/a',
    'a/',
    'a:',
    'a:b:c',
    'a@b',
    'a@sha256:1',
    '-a',
    'a..b',
    'http://a/b',
    'a b',
    'x'.repeat(401),
    '../a',
  ])('%j is none', (text) => expect(() => parseImageReference(text)).toThrow('is no name of an image'));
});

/** Names of images, as container tools write them: `quay.io/shop/web:1`, `web`, `web@sha256:…`. */

export interface ImageReference {
  /** With the registry, except for Docker's own, which nobody writes. */
  readonly repository: string;
  readonly tag: string | undefined;
  readonly digest: string | undefined;
}

/** It is no name of an image. */
export class ImageReferenceError extends Error {
  constructor(text: string) {
    super(`${JSON.stringify(text)} is no name of an image; one is like quay.io/shop/web:1`);
    this.name = 'ImageReferenceError';
  }
}

const LENGTH_MAX = 400;
const DEFAULT_TAG = 'latest';
const SHAPE = /^([^@]+?)(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(sha256:[0-9a-f]{64}))?$/;
const REGISTRY = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?$/;
const COMPONENT = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;

/** Throws an ImageReferenceError for what is no name. */
export function parseImageReference(text: string): ImageReference {
  const match = text.length <= LENGTH_MAX ? SHAPE.exec(text) : null;
  const [, path = '', tag, digest] = match ?? [];
  const components = path.split('/');
  const [first = ''] = components;
  const hasRegistry = components.length > 1 && (/[.:]/.test(first) || first === 'localhost');
  const names = hasRegistry ? components.slice(1) : components;
  if (names.some((name) => !COMPONENT.test(name)) || (hasRegistry && !REGISTRY.test(first)))
    throw new ImageReferenceError(text);
  return { repository: repositoryOf(hasRegistry ? first : '', names), tag, digest };
}

function repositoryOf(registry: string, names: readonly string[]): string {
  const isDocker = registry === '' || registry === 'docker.io' || registry === 'index.docker.io';
  if (!isDocker) return [registry, ...names].join('/');
  return (names.length === 2 && names[0] === 'library' ? names.slice(1) : names).join('/');
}

/** The one name under which an image is kept: always with a tag. */
export function imageName({ repository, tag }: ImageReference): string {
  return `${repository}:${tag ?? DEFAULT_TAG}`;
}
